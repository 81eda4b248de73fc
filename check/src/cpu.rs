//! What the processor gives.
use crate::capability::{Capability, Verdict};
use crate::system::read_trimmed;

/// asm/hwcap2.h: user space may use the fs and gs base instructions.
const HWCAP2_FSGSBASE: u64 = 1 << 1;
/// linux/auxvec.h
const AT_HWCAP2: u64 = 26;

pub(crate) fn capabilities() -> Vec<Capability> {
    vec![fsgsbase(), tsc(), clocksource()]
}

/// The processor's flag says nothing about the kernel, which must have switched it on: the
/// auxiliary vector says both.
fn fsgsbase() -> Capability {
    let verdict = match hwcap2() {
        Some(bits) if bits & HWCAP2_FSGSBASE != 0 => Verdict::ok("on (AT_HWCAP2)"),
        Some(_) => {
            if flags().contains("fsgsbase") {
                Verdict::missing("off in the kernel", "Linux 5.9, not booted with nofsgsbase")
            } else {
                Verdict::missing("not in this processor", "Ivy Bridge or Zen, or newer")
            }
        }
        None => Verdict::unknown("no AT_HWCAP2 in /proc/self/auxv", "mount /proc"),
    };
    let purpose = "a probe finds its thread's ring and verifies that it is its own";
    Capability::new("fsgsbase", purpose, "/proc/self/auxv", verdict).needed()
}

fn hwcap2() -> Option<u64> {
    let auxv = std::fs::read("/proc/self/auxv").ok()?;
    let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_ne_bytes);
    auxv.chunks_exact(16)
        .find(|pair| word(&pair[..8]) == Some(AT_HWCAP2))
        .and_then(|pair| word(&pair[8..]))
}

struct Flags(String);

impl Flags {
    fn contains(&self, flag: &str) -> bool {
        self.0.split_whitespace().any(|word| word == flag)
    }
}

/// Empty when there are none to read.
fn flags() -> Flags {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = cpuinfo.lines().find(|line| line.starts_with("flags"));
    Flags(line.unwrap_or_default().to_string())
}

fn tsc() -> Capability {
    let flags = flags();
    let lacking: Vec<&str> = ["constant_tsc", "nonstop_tsc"]
        .into_iter()
        .filter(|flag| !flags.contains(flag))
        .collect();
    let remedy = "a virtual machine with the invariant TSC exposed (QEMU: -cpu host,+invtsc)";
    let verdict = match (flags.0.is_empty(), lacking.is_empty()) {
        (true, _) => Verdict::unknown("no flags in /proc/cpuinfo", remedy),
        (false, true) => Verdict::ok("constant_tsc nonstop_tsc"),
        (false, false) => Verdict::missing(format!("no {}", lacking.join(", no ")), remedy),
    };
    let purpose = "ticks that mean the same time on every core and at every frequency";
    Capability::new("invariant-tsc", purpose, "/proc/cpuinfo", verdict)
}

/// The kernel watches the TSC and leaves it when cores disagree.
fn clocksource() -> Capability {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let remedy = "see `dmesg | grep -i tsc` for why the kernel left it";
    let verdict = match read_trimmed(path).as_deref() {
        Ok("tsc") => Verdict::ok("the kernel itself keeps time by the TSC"),
        // Guests keep kvm-clock although the TSC below it is sound.
        Ok(other) => Verdict::missing(format!("the kernel keeps time by {other}"), remedy),
        Err(error) => Verdict::unknown(error, remedy),
    };
    let purpose = "a TSC that is the same on all cores";
    Capability::new("tsc-clocksource", purpose, path, verdict)
}
