//! Names of counters, as `perf list` has them, and what the kernel is asked for (linux/perf_event.h).
use hopscope_event::CounterEvent;

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;
const CONTEXT_SWITCHES: u64 = 3;

/// `PERF_COUNT_HW_*` by number, each with the names that it goes by.
const GENERIC: [&[&str]; 10] = [
    &["cycles", "cpu-cycles"],
    &["instructions"],
    &["cache-references"],
    &["cache-misses"],
    &["branches", "branch-instructions"],
    &["branch-misses"],
    &["bus-cycles"],
    &["stalled-cycles-frontend", "idle-cycles-frontend"],
    &["stalled-cycles-backend", "idle-cycles-backend"],
    &["ref-cycles"],
];

/// `PERF_COUNT_HW_CACHE_*` by number.
const CACHES: [&[&str]; 7] = [
    &["l1-dcache", "l1d"],
    &["l1-icache", "l1i"],
    &["llc"],
    &["dtlb"],
    &["itlb"],
    &["branch"],
    &["node"],
];

/// `PERF_COUNT_HW_CACHE_OP_*` and `_RESULT_*`: operation, result, names.
const OPERATIONS: [(u64, u64, &[&str]); 6] = [
    (0, 0, &["loads"]),
    (0, 1, &["load-misses", "misses", "miss"]),
    (1, 0, &["stores"]),
    (1, 1, &["store-misses"]),
    (2, 0, &["prefetches"]),
    (2, 1, &["prefetch-misses"]),
];

/// Counted by the kernel, which tells user space of them only when a thread gets a processor again: too late for calls.
const TOLD_LATE: [&str; 9] = [
    "page-faults",
    "faults",
    "minor-faults",
    "major-faults",
    "cpu-migrations",
    "migrations",
    "task-clock",
    "cpu-clock",
    "alignment-faults",
];

/// `-` and `_`, large and small letters are the same.
///
/// # Errors
/// Why there is none of that name, in words.
pub fn named(name: &str) -> Result<CounterEvent, String> {
    let plain = name.to_lowercase().replace('_', "-");
    let event = |kind, config| Ok(CounterEvent { kind, config });
    if let Some(config) = GENERIC.iter().position(|names| names.contains(&&*plain)) {
        return event(HARDWARE, config as u64);
    }
    if ["context-switches", "cs"].contains(&&*plain) {
        return event(SOFTWARE, CONTEXT_SWITCHES);
    }
    if TOLD_LATE.contains(&&*plain) {
        return Err(format!(
            "@{name}: the kernel tells this count to a running thread only when it has lost its processor; of its own events only @context-switches can be read in a call"
        ));
    }
    if let Some(Ok(config)) = plain
        .strip_prefix('r')
        .map(|hex| u64::from_str_radix(hex, 16))
    {
        return event(RAW, config);
    }
    cache(&plain).map_or_else(
        || {
            Err(format!(
                "@{name}: no counter has this name; there are @instructions, @cycles, @cache-misses, @L1-dcache-load-misses and the others of perf list, raw events as @rNNNN, and @context-switches"
            ))
        },
        |config| event(CACHE, config),
    )
}

fn cache(name: &str) -> Option<u64> {
    let caches = CACHES.iter().enumerate();
    let of = |(cache, names): (usize, &&[&str])| {
        let rest = names.iter().find_map(|n| name.strip_prefix(*n))?;
        let rest = rest.strip_prefix('-')?;
        let (op, result, _) = OPERATIONS
            .iter()
            .find(|(.., names)| names.contains(&rest))?;
        Some(cache as u64 | op << 8 | result << 16)
    };
    caches.into_iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> (u32, u64) {
        let event = named(name).expect(name);
        (event.kind, event.config)
    }

    #[test]
    fn names_are_those_of_perf() {
        assert_eq!(of("cycles"), (0, 0));
        assert_eq!(of("Instructions"), (0, 1));
        assert_eq!(of("ref-cycles"), (0, 9));
        assert_eq!(of("L1-dcache-load-misses"), (3, 0x1_0000));
        assert_eq!(of("l1d_miss"), (3, 0x1_0000));
        assert_eq!(of("LLC-stores"), (3, 0x102));
        assert_eq!(of("iTLB-load-misses"), (3, 0x1_0004));
        assert_eq!(of("node-prefetch-misses"), (3, 0x1_0206));
        assert_eq!(of("r01c2"), (4, 0x1c2));
        assert_eq!(of("cs"), (1, 3));
        assert!(named("context_switches").expect("there").is_software());
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        let why = |name: &str| named(name).expect_err(name);
        assert!(why("page-faults").contains("lost its processor"));
        assert!(why("flops").contains("perf list"));
        assert!(why("rxyz").contains("no counter"));
        assert!(why("l1d").contains("no counter"));
    }
}
