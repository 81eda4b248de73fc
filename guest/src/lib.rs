//! A virtual machine with another kernel (Debian's 6.1, which `scripts/install-vm` fetches): built for a
//! test or a bench, booted once, read to its end. Without KVM unless asked for: whatever machine this is, the
//! guest's kernel has the hooks that this one may lack, and takes modules. Times in it are an emulator's then; what
//! happened, how often and in which order is not.
#![forbid(unsafe_code)]

mod accelerator;
mod archive;
mod error;
mod kernel;
mod machine;
mod module;
mod nic;
mod programs;
mod qemu;
mod said;

pub use accelerator::Accelerator;
pub use error::{Error, Result};
pub use kernel::Kernel;
pub use machine::Guest;
pub use module::{ECHO, Module};
pub use nic::Nic;
pub use programs::find_program;
pub use qemu::MEMORY_MIB;
pub use said::{Run, Step};
