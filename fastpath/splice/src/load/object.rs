//! Compiled programs, opened and loaded, with the verifier's words where it refuses.
use super::LoadError;
use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel};
use std::sync::Mutex;

/// libbpf prints the verifier's words line by line, to one place for the whole process.
static WORDS: Mutex<String> = Mutex::new(String::new());

fn keep(_: PrintLevel, line: String) {
    if let Ok(mut words) = WORDS.lock() {
        words.push_str(&line);
    }
}

/// The lines that say what is wrong, of a log that may have a million.
fn words() -> String {
    let words = WORDS.lock().map(|mut w| std::mem::take(&mut *w));
    let words = words.unwrap_or_default();
    let mut last: Vec<&str> = words
        .lines()
        .filter(|line| {
            !line.is_empty() && !line.contains("-- END PROG") && !line.starts_with("processed")
        })
        .rev()
        .take(12)
        .collect();
    last.reverse();
    last.join(" | ")
}

pub(crate) fn load(
    bytes: &[u8],
    name: &str,
    fit: impl FnOnce(&mut OpenObject) -> Result<(), LoadError>,
) -> Result<Object, LoadError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let mut open = ObjectBuilder::default()
        .name(name)
        .and_then(|builder| builder.open_memory(bytes))
        .map_err(LoadError::bpf("opening the programs"))?;
    fit(&mut open)?;
    open.load().map_err(|error| match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied if !may_load() => LoadError::NotAllowed,
        _ => LoadError::Refused {
            what: error.to_string(),
            log: words(),
        },
    })
}

/// CAP_BPF, or CAP_SYS_ADMIN, which stands for it; with CAP_NET_ADMIN (linux/capability.h). A program
/// that the verifier refuses is refused with the same error number.
fn may_load() -> bool {
    const NET_ADMIN: u32 = 12;
    const SYS_ADMIN: u32 = 21;
    const BPF: u32 = 39;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective & (1 << capability) != 0;
    has(SYS_ADMIN) || (has(BPF) && has(NET_ADMIN))
}
