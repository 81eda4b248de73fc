//! Panics that are caught, that end a thread, and that clean up on their way. Until SIGTERM is pending it goes on, round after round.
use std::panic::{catch_unwind, set_hook};
use std::sync::atomic::{AtomicU64, Ordering};

static CLEANED: AtomicU64 = AtomicU64::new(0);

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        CLEANED.fetch_add(1, Ordering::Relaxed);
    }
}

#[inline(never)]
fn leaf(n: usize) -> u64 {
    let three = vec![1u64, 2, 3];
    assert!(n % 7 != 3, "seven");
    three[n % 4]
}

#[inline(never)]
fn middle(n: usize) -> u64 {
    let _guard = Guard;
    leaf(n) + 1
}

#[inline(never)]
fn outer(n: usize) -> u64 {
    catch_unwind(|| middle(n)).unwrap_or(100)
}

fn main() {
    set_hook(Box::new(|_| {}));
    let rounds: usize = std::env::args().nth(1).map_or(1, |n| n.parse().unwrap());
    let mut sum = 0;
    for round in 0..rounds {
        sum += (0..100).map(|n| outer(n + round)).sum::<u64>();
        let ended = std::thread::spawn(|| {
            let _guard = Guard;
            leaf(3)
        });
        assert!(ended.join().is_err());
    }
    println!("sum {sum}, {} cleaned", CLEANED.load(Ordering::Relaxed));
}
