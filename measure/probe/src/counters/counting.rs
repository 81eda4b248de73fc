//! Events that a thread reads itself, without a system call: what the kernel maps of each is one page, which says where the
//! count is (`perf_event_mmap_page`, linux/perf_event.h; rdpmc(…) in arch/x86/events/core.c).
use super::perf_event::{self, Counting};
use hopscope_event::counter::{COUNT_BITS, COUNTERS_MAX};
use hopscope_event::{CounterEntry, CounterEvent};
use nix::libc;
use std::fs::File;
use std::io;

/// Where a probe looks in the page: `lock`, `index`, `offset`.
pub const LOCK_AT: usize = 8;
pub const INDEX_AT: usize = 12;
pub const OFFSET_AT: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum CounterError {
    #[error("{0}")]
    Name(String),
    #[error("at most {COUNTERS_MAX} counters can be read in a recording, {0} are asked for")]
    TooMany(usize),
    #[error("@{name} is not available on this machine: {source}{}", hint(source, *software))]
    Refused {
        name: String,
        software: bool,
        source: io::Error,
    },
    #[error(
        "@{name} may not be read in user mode on this machine (/sys/bus/event_source/devices/cpu/rdpmc is 0): set it to 1; times need no counter"
    )]
    NotInUserMode { name: String },
}

fn hint(error: &io::Error, software: bool) -> &'static str {
    use libc::{EACCES, EINVAL, ENOENT, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM};
    match error.raw_os_error() {
        Some(ENOENT | EOPNOTSUPP) => {
            "; its processor shows no such counter (virtual machines mostly have none). Times are measured in TSC ticks on any machine, the kernel counts @context-switches, and recordings tell when threads had no processor"
        }
        Some(EACCES | EPERM) if software => {
            "; run as root, with CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=1"
        }
        Some(EACCES | EPERM) => {
            "; run as root, with CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=2"
        }
        Some(EINVAL | ENOSPC) => {
            "; the processor cannot count this together with the others: ask for fewer"
        }
        Some(ENOSYS) => "; this kernel or sandbox has no perf events",
        _ => "",
    }
}

/// The counters with these names, each once, as this machine has them. `emulated`: processors are not asked.
///
/// # Errors
/// The first that there is not.
pub fn chosen<'a>(
    names: impl Iterator<Item = &'a str>,
    emulated: bool,
) -> Result<Vec<CounterEntry>, CounterError> {
    let mut counters: Vec<CounterEntry> = Vec::new();
    for name in names {
        let event = super::events::named(name).map_err(CounterError::Name)?;
        if counters.iter().all(|c| c.event != event) {
            counters.push(CounterEntry {
                number: counters.len() as u8,
                name: name.to_owned(),
                event,
                bits: COUNT_BITS as u8,
                cost: None,
                emulated: emulated && !event.is_software(),
            });
        }
    }
    if counters.len() > COUNTERS_MAX {
        return Err(CounterError::TooMany(counters.len()));
    }
    let opened = open(0, &counters)?;
    for (counter, file) in counters.iter_mut().zip(&opened) {
        let Some(file) = file.as_ref().filter(|_| !counter.event.is_software()) else {
            continue;
        };
        let refused = |source| refused(counter, source);
        let said = perf_event::counting(file).map_err(refused)?;
        counter.bits = bits(counter, said)?;
    }
    Ok(counters)
}

fn bits(counter: &CounterEntry, said: Counting) -> Result<u8, CounterError> {
    match said.user_reads {
        // 0: the kernel does not say; all there are have as many.
        true => Ok(match u32::from(said.width) {
            0 | COUNT_BITS.. => COUNT_BITS as u8,
            narrower => narrower as u8,
        }),
        false => Err(CounterError::NotInUserMode {
            name: counter.name.clone(),
        }),
    }
}

fn refused(counter: &CounterEntry, source: io::Error) -> CounterError {
    CounterError::Refused {
        name: counter.name.clone(),
        software: counter.event.is_software(),
        source,
    }
}

/// Events of a thread (0: of this one) that count from now on; `None` for those that are emulated. Those of the processor
/// are one group, pinned to it: they count together or not at all, and are never multiplexed.
///
/// # Errors
/// The first that the kernel refuses.
pub fn open(tid: i32, counters: &[CounterEntry]) -> Result<Vec<Option<File>>, CounterError> {
    let mut leader: Option<usize> = None;
    let mut opened: Vec<Option<File>> = Vec::new();
    for counter in counters {
        if counter.emulated {
            opened.push(None);
            continue;
        }
        let CounterEvent { kind, config } = counter.event;
        let group = match counter.event.is_software() {
            true => None,
            false => leader.and_then(|n| opened[n].as_ref()),
        };
        let file = perf_event::open_counting(tid, (kind, config), group)
            .map_err(|source| refused(counter, source))?;
        if leader.is_none() && !counter.event.is_software() {
            leader = Some(opened.len());
        }
        opened.push(Some(file));
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_own_event_can_be_opened_or_says_why_not() {
        match chosen(["context-switches", "cs"].into_iter(), false) {
            Ok(counters) => {
                assert_eq!(counters.len(), 1);
                assert!(!counters[0].counts_unbroken_only() && !counters[0].emulated);
            }
            Err(e) => assert!(e.to_string().contains("sysctl"), "{e}"),
        }
    }

    #[test]
    fn no_more_than_a_record_can_name() {
        let names = [
            "cycles",
            "instructions",
            "branches",
            "cache-misses",
            "ref-cycles",
        ];
        let five = chosen(names.into_iter(), true);
        assert!(matches!(five, Err(CounterError::TooMany(5))), "{five:?}");
        let four = chosen(names[..4].iter().copied(), true).expect("emulated");
        assert!(four.iter().all(|c| c.emulated));
        assert_eq!(four[3].number, 3);
    }
}
