//! The kernel's configuration, and what it says of itself.
use crate::capability::{Capability, Verdict};
use crate::child::{Trial, TrialChild};
use crate::system::read_trimmed;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// First two bytes of BTF data (Documentation/bpf/btf.rst), as they lie on x86.
const BTF_MAGIC: [u8; 2] = [0x9f, 0xeb];

pub(crate) fn capabilities() -> Vec<Capability> {
    vec![lockdown(), btf()]
}

fn lockdown() -> Capability {
    let remedy = "boot with lockdown=none, or without secure boot";
    // Unmounted in many containers; a child sees it in a mount namespace of its own.
    let seen = read_trimmed(LOCKDOWN).or_else(|error| {
        let mut child = TrialChild::start(Trial::Lockdown).map_err(|e| e.to_string())?;
        child.lines().pop().ok_or(error)
    });
    let verdict = match seen {
        Ok(text) if text.contains("[none]") => Verdict::ok("none"),
        Ok(text) => Verdict::missing(text, remedy),
        Err(error) => match option("CONFIG_SECURITY_LOCKDOWN_LSM") {
            Ok(false) => Verdict::ok("not in this kernel"),
            _ => Verdict::unknown(error, "mount -t securityfs none /sys/kernel/security"),
        },
    };
    let purpose = "BPF programs that read kernel memory, kprobes and fentry";
    Capability::new("no-lockdown", purpose, LOCKDOWN, verdict)
}

pub(crate) fn be_lockdown_child() -> io::Result<()> {
    let nothing = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Otherwise the mount would show in the namespace we came from.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(nothing, "/", nothing, private, nothing)?;
    let place = "/sys/kernel/security";
    mount(
        Some("none"),
        place,
        Some("securityfs"),
        MsFlags::MS_RDONLY,
        nothing,
    )?;
    let text = std::fs::read_to_string(LOCKDOWN)?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn btf() -> Capability {
    let remedy = "a kernel with CONFIG_DEBUG_INFO_BTF";
    let verdict = match std::fs::read(BTF) {
        Ok(data) if data.starts_with(&BTF_MAGIC) => {
            Verdict::ok(format!("{} KiB of kernel types", data.len() / 1024))
        }
        Ok(_) => Verdict::unknown("the file does not start with BTF's magic", remedy),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Verdict::missing("no kernel types", remedy)
        }
        Err(error) => Verdict::unknown(error.to_string(), remedy),
    };
    let purpose = "BPF programs that run on any kernel version";
    Capability::new("btf", purpose, BTF, verdict)
}

/// Whether the kernel was built with an option; the reason when that cannot be told.
pub(crate) fn option(name: &str) -> Result<bool, String> {
    static CONFIG: OnceLock<Result<String, String>> = OnceLock::new();
    let config = CONFIG.get_or_init(read_config).as_ref()?;
    let is_set = |line: &str| {
        let value = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='));
        matches!(value, Some("y" | "m"))
    };
    Ok(config.lines().any(is_set))
}

fn read_config() -> Result<String, String> {
    let unpacked = Command::new("gzip")
        .args(["-dc", "/proc/config.gz"])
        .stderr(Stdio::null())
        .output();
    if let Ok(out) = unpacked
        && out.status.success()
    {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    let release = read_trimmed("/proc/sys/kernel/osrelease")?;
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
    ];
    places
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .ok_or_else(|| {
            format!(
                "no kernel configuration: /proc/config.gz, {}",
                places.join(", ")
            )
        })
}
