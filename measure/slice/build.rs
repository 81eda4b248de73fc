//! What is linked beside the crates, and the programs that run in the kernel.
#[path = "../../bpf/build/programs.rs"]
mod kernel_programs;
#[path = "build/libpcap.rs"]
mod libpcap;

fn main() {
    libpcap::link();
    kernel_programs::compile(&["kinds", "slice"]);
}
