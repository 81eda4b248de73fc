//! Compiles a crate's BPF programs: included by its build script. libbpf's headers come with its crate, the kernel's types
//! are in `bpf/include/kernel.h`.
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

const INCLUDE: &str = "bpf/include";

/// `bpf/NAME.bpf.c` to `NAME.bpf.o` in cargo's directory for results.
pub fn compile(names: &[&str]) {
    println!("cargo::rerun-if-changed=bpf");
    // The workspace's folder is one of those above the crate's.
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut above = crate_folder
        .ancestors()
        .skip(1)
        .map(|folder| folder.join(INCLUDE));
    let include = above.find(|folder| folder.is_dir()).unwrap_or_default();
    println!("cargo::rerun-if-changed={}", include.display());
    for name in names {
        if let Err(why) = compile_one(name, &include) {
            println!("cargo::error={name}.bpf.c: {why}");
            exit(1);
        }
    }
}

fn compile_one(name: &str, kernel: &Path) -> Result<(), String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let include = env::var_os("DEP_BPF_INCLUDE").unwrap_or_default();
    let status = Command::new(env::var_os("CLANG").unwrap_or_else(|| "clang".into()))
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v3"])
        .args(["-D__TARGET_ARCH_x86", "-Wall", "-Werror"])
        .arg("-Wno-unused-function")
        .arg("-I")
        .arg(kernel)
        .arg("-I")
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
