//! Huge pages and cgroups, and reading the small files that tell of them.
use crate::capability::{Capability, Verdict};

const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";

pub(crate) fn capabilities() -> Vec<Capability> {
    vec![huge_pages(), cgroup2()]
}

/// # Errors
/// The path and the system's reason, ready to be shown.
pub(crate) fn read_trimmed(path: &str) -> Result<String, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_string()),
        Err(error) => Err(format!("{path}: {error}")),
    }
}

fn huge_pages() -> Capability {
    let remedy = "sysctl vm.nr_hugepages=256, or run DPDK programs with --no-huge";
    let verdict = match reserved() {
        Ok(sizes) if sizes.iter().any(|(_, count)| *count > 0) => {
            let words: Vec<String> = sizes
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(size, count)| format!("{count} of {size}"))
                .collect();
            Verdict::ok(format!("reserved: {}", words.join(", ")))
        }
        Ok(_) => Verdict::missing("none reserved", remedy),
        Err(why) => Verdict::unknown(why, remedy),
    };
    let purpose = "DPDK network functions; hopscope itself needs none";
    Capability::new("huge-pages", purpose, HUGE_PAGES, verdict)
}

/// (size, pages reserved) for each size.
fn reserved() -> Result<Vec<(String, u64)>, String> {
    let dirs = std::fs::read_dir(HUGE_PAGES).map_err(|e| format!("{HUGE_PAGES}: {e}"))?;
    let mut sizes = Vec::new();
    for dir in dirs.flatten() {
        let count = read_trimmed(&format!("{}/nr_hugepages", dir.path().display()))?;
        let name = dir.file_name().to_string_lossy().replace("hugepages-", "");
        let count = count.parse().map_err(|_| format!("{name}: {count}"))?;
        sizes.push((name, count));
    }
    Ok(sizes)
}

fn cgroup2() -> Capability {
    let remedy = "mount -t cgroup2 none /sys/fs/cgroup/unified";
    let verdict = match read_trimmed("/proc/self/mounts") {
        Err(why) => Verdict::unknown(why, remedy),
        Ok(mounts) => {
            let place = mounts.lines().find_map(|line| {
                let mut words = line.split(' ');
                let place = words.nth(1)?;
                (words.next()? == "cgroup2").then_some(place)
            });
            match place {
                Some(place) => Verdict::ok(place),
                None => Verdict::missing("not mounted", remedy),
            }
        }
    };
    let purpose = "BPF programs on sockets: `slice`, `splice`";
    Capability::new("cgroup2", purpose, "/proc/self/mounts", verdict)
}
