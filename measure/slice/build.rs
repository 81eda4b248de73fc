//! What is linked beside the crates.
#[path = "build/libpcap.rs"]
mod libpcap;

fn main() {
    libpcap::link();
}
