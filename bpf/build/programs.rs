//! Compiles a crate's BPF programs: included by its build script. libbpf's headers come with its crate, the kernel's types
//! are in `bpf/include/kernel.h`.
use std::env;
use std::path::PathBuf;
use std::process::{Command, exit};

/// Seen from a crate two folders below the workspace's.
const INCLUDE: &str = "../../bpf/include";

/// `bpf/NAME.bpf.c` to `NAME.bpf.o` in cargo's directory for results.
pub fn compile(names: &[&str]) {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed={INCLUDE}");
    for name in names {
        if let Err(why) = compile_one(name) {
            println!("cargo::error={name}.bpf.c: {why}");
            exit(1);
        }
    }
}

fn compile_one(name: &str) -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let include = env::var_os("DEP_BPF_INCLUDE").unwrap_or_default();
    let status = Command::new(env::var_os("CLANG").unwrap_or_else(|| "clang".into()))
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3"])
        .args(["-D__TARGET_ARCH_x86", "-Wall", "-Werror"])
        .arg("-Wno-unused-function")
        .args(["-I", INCLUDE, "-I"])
        .arg(include)
        .args(["-c", &format!("bpf/{name}.bpf.c"), "-o"])
        .arg(out.join(format!("{name}.bpf.o")))
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("clang: {status}")),
        Err(error) => Err(format!("clang cannot be run: {error}")),
    }
}
