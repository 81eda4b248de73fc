//! What the verifier prints where it refuses a program. libbpf passes it on line by line, to one callback for the whole
//! process.
use libbpf_rs::PrintLevel;
use std::sync::Mutex;

static LOG: Mutex<String> = Mutex::new(String::new());

const LINES: usize = 12;

/// Keeps libbpf's warnings from here on.
pub(crate) fn capture() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, append)));
}

fn append(_: PrintLevel, line: String) {
    if let Ok(mut log) = LOG.lock() {
        log.push_str(&line);
    }
}

/// The last lines with a reason, of a log that may have a million; the log is empty afterwards.
pub(crate) fn take() -> String {
    let log = LOG.lock().map(|mut log| std::mem::take(&mut *log));
    tail(&log.unwrap_or_default())
}

fn tail(log: &str) -> String {
    let has_reason = |line: &&str| {
        !line.is_empty() && !line.contains("-- END PROG") && !line.starts_with("processed")
    };
    let mut last: Vec<&str> = log.lines().filter(has_reason).rev().take(LINES).collect();
    last.reverse();
    last.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_kept_and_the_frame_is_not() {
        let log =
            "0: R1=ctx()\n\n1: invalid mem access\nprocessed 2 insns\n-- END PROG LOAD LOG --\n";
        assert_eq!(tail(log), "0: R1=ctx() | 1: invalid mem access");
        let long: String = (0..100).map(|n| format!("{n}\n")).collect();
        assert!(tail(&long).starts_with("88 | ") && tail(&long).ends_with(" | 99"));
    }
}
