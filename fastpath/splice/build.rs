//! The programs that run in the kernel.
#[path = "../../bpf/build/programs.rs"]
mod kernel_programs;

fn main() {
    kernel_programs::compile(&["accel", "ends", "edges", "placed", "echo", "proxy"]);
}
