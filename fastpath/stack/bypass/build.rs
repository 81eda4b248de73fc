//! The program that runs in the kernel.
#[path = "../../../bpf/build/programs.rs"]
mod kernel_programs;

fn main() {
    kernel_programs::compile(&["bypass"]);
}
