//! Where things lie.
use std::path::{Path, PathBuf};

/// Without `..` in it: chromedriver reads no file below such a path (`base::ReadFileToString`).
pub fn repository() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

/// Sources of target programs.
pub fn programs() -> PathBuf {
    repository().join("tests/programs")
}

pub fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => repository().join(dir),
        None => repository().join("target"),
    }
}

/// The Python that `scripts/install-readers` makes (or `HOPSCOPE_READERS`).
pub fn readers_python() -> PathBuf {
    match std::env::var_os("HOPSCOPE_READERS") {
        Some(path) => path.into(),
        None => target_dir().join("readers/bin/python"),
    }
}

/// What `scripts/install-vm` unpacks.
pub struct VmKernel {
    /// As `uname -r` gives it in the guest.
    pub release: String,
    pub image: PathBuf,
    pub config: PathBuf,
    pub modules: Vec<PathBuf>,
}

/// # Errors
/// What is not there, and how to get it.
pub fn vm_kernel() -> Result<VmKernel, String> {
    let vm = target_dir().join("vm");
    let package = vm.join("package");
    let missing = |what: &Path| format!("no {} (scripts/install-vm)", what.display());
    let text = std::fs::read_to_string(&package).map_err(|_| missing(&package))?;
    let release = text.trim().trim_start_matches("linux-image-").to_owned();
    let kernel = vm.join("lib/modules").join(&release).join("kernel");
    let module = |name: &str| kernel.join(format!("{name}.ko"));
    let found = VmKernel {
        image: vm.join(format!("boot/vmlinuz-{release}")),
        config: vm.join(format!("boot/config-{release}")),
        modules: VM_MODULES.iter().map(|name| module(name)).collect(),
        release,
    };
    let needed = [&found.image, &found.config];
    let absent = needed
        .into_iter()
        .chain(&found.modules)
        .find(|path| !path.is_file());
    match absent.map(|path| missing(path)) {
        Some(reason) => Err(reason),
        None => Ok(found),
    }
}

/// None needs another.
const VM_MODULES: &[&str] = &[
    "drivers/net/veth",
    "drivers/net/tun",
    "net/sched/cls_bpf",
    "net/sched/sch_ingress",
    "net/sched/sch_tbf",
];

/// The release binary (or `HOPSCOPE_BIN`); the runner has built it before the first case.
pub fn hopscope_bin() -> PathBuf {
    match std::env::var_os("HOPSCOPE_BIN") {
        Some(path) => path.into(),
        None => target_dir().join("release/hopscope"),
    }
}

/// An empty directory of this case's own, removed by the next run of the same case: what a failed
/// case left can be looked at.
pub fn scratch() -> PathBuf {
    let case = std::env::var("HOPSCOPE_CASE").unwrap_or_else(|_| "none".into());
    let dir = target_dir()
        .join("test-scratch")
        .join(case.replace([':', '/', ' '], "_"));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("scratch directory in target/");
    dir
}
