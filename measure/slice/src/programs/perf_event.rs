//! Events that stamps can count in place of time: perf's, one counter a processor.
use super::SliceError;
use hopscope_bpf::{BpfError, object};
use hopscope_event::slice::SliceEvent;
use libbpf_rs::{MapCore, MapFlags, Object};
use nix::libc;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// perf_event_open(2): `type` and `config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Code {
    kind: u32,
    config: u64,
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const RAW: u32 = 4;

/// Under the names that perf(1) gives them.
const NAMED: &[(&str, u32, u64)] = &[
    ("cpu-clock", SOFTWARE, 0),
    ("task-clock", SOFTWARE, 1),
    ("page-faults", SOFTWARE, 2),
    ("faults", SOFTWARE, 2),
    ("context-switches", SOFTWARE, 3),
    ("cs", SOFTWARE, 3),
    ("cpu-migrations", SOFTWARE, 4),
    ("migrations", SOFTWARE, 4),
    ("minor-faults", SOFTWARE, 5),
    ("major-faults", SOFTWARE, 6),
    ("cycles", HARDWARE, 0),
    ("cpu-cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branches", HARDWARE, 4),
    ("branch-instructions", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
    ("bus-cycles", HARDWARE, 6),
    ("stalled-cycles-frontend", HARDWARE, 7),
    ("stalled-cycles-backend", HARDWARE, 8),
    ("ref-cycles", HARDWARE, 9),
];

/// `time`, a name of perf's, `PMU/EVENT/`, or `rNNN`.
///
/// # Errors
/// Nothing here goes by that name.
pub fn event(name: &str) -> Result<SliceEvent, SliceError> {
    if name == "time" {
        return Ok(SliceEvent::Time);
    }
    code(name)?;
    Ok(SliceEvent::Counter(name.to_owned()))
}

fn code(name: &str) -> Result<Code, SliceError> {
    if let Some((_, kind, config)) = NAMED.iter().find(|(known, _, _)| *known == name) {
        let (kind, config) = (*kind, *config);
        return Ok(Code { kind, config });
    }
    let raw = name
        .strip_prefix('r')
        .map(|hex| u64::from_str_radix(hex, 16));
    if let Some(Ok(config)) = raw {
        return Ok(Code { kind: RAW, config });
    }
    of_pmu(name).ok_or_else(|| SliceError::Event {
        name: name.to_owned(),
        why: "nothing here goes by that name (perf list has names)".into(),
    })
}

/// `msr/tsc/`: what the kernel's description of the PMU says.
fn of_pmu(name: &str) -> Option<Code> {
    let (pmu, event) = name.strip_suffix('/').unwrap_or(name).split_once('/')?;
    if [pmu, event].iter().any(|part| part.contains(['/', '.'])) {
        return None;
    }
    let of = PathBuf::from("/sys/bus/event_source/devices").join(pmu);
    let kind = fs::read_to_string(of.join("type"))
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let text = fs::read_to_string(of.join("events").join(event)).ok()?;
    let config = text.trim().strip_prefix("event=0x")?;
    let config = u64::from_str_radix(config, 16).ok()?;
    Some(Code { kind, config })
}

/// Counters of every processor, given to the programs; they count while the result lives.
pub(super) fn open(programs: &Object, name: &str) -> Result<Vec<OwnedFd>, SliceError> {
    let code = code(name)?;
    let map = object::map(programs, "events")?;
    let mut counters = Vec::new();
    for cpu in 0..map.max_entries() {
        let counter = match open_one(code, cpu) {
            Ok(counter) => counter,
            // The processor is not there, or off.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) && cpu > 0 => continue,
            Err(error) => {
                return Err(SliceError::Event {
                    name: name.to_owned(),
                    why: refusal(code, &error),
                });
            }
        };
        let fd = counter.as_raw_fd().to_ne_bytes();
        map.update(&cpu.to_ne_bytes(), &fd, MapFlags::ANY)
            .map_err(BpfError::call("counting an event"))?;
        counters.push(counter);
    }
    Ok(counters)
}

fn refusal(code: Code, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP) if matches!(code.kind, HARDWARE | RAW) => {
            "not available on this machine: it has no performance counters (PMU), or none for this"
                .into()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "counting on whole processors is not allowed: run as root, or with CAP_PERFMON".into()
        }
        _ => error.to_string(),
    }
}

/// `struct perf_event_attr`, its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    rest: [u64; 6],
}

const _: () = assert!(size_of::<Attributes>() == 64);
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;

fn open_one(code: Code, cpu: u32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: code.kind,
        size: size_of::<Attributes>() as u32,
        config: code.config,
        ..Attributes::default()
    };
    let (all_processes, no_group) = (-1, -1);
    // SAFETY: the attributes are live, their size is in them, and the kernel only reads them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &attributes,
            all_processes,
            cpu,
            no_group,
            FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_perf() {
        assert_eq!(event("time").unwrap(), SliceEvent::Time);
        let raw = Code {
            kind: RAW,
            config: 0xc0,
        };
        assert_eq!(code("rc0").unwrap(), raw);
        assert_eq!(code("cycles").unwrap().kind, HARDWARE);
        for unknown in ["rx", "msr/../x/", "no/such/", "cycle"] {
            let error = event(unknown).unwrap_err().to_string();
            assert!(error.contains("goes by that name"), "{error}");
        }
    }
}
