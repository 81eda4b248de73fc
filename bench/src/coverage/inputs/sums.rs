fn main() {
    let words: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let sum: u32 = words.iter().map(|w| w.parse::<u32>().unwrap()).sum();
    println!("{sum}");
}
