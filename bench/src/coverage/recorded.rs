//! What a recording says of the functions of a program.
use crate::error::{Error, Result};
use crate::hopscope::Hopscope;
use hopscope_trace::TraceReader;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Recorded {
    pub(super) accepted: usize,
    pub(super) refused: usize,
    /// Of all modules but those that every program has.
    pub(super) own_accepted: usize,
    pub(super) own_refused: usize,
    /// Of those, by reason; numbers in it are `N`.
    pub(super) own_refused_because: BTreeMap<String, usize>,
    pub(super) records: u64,
    pub(super) lost: u64,
    /// Calls that an exception or the end of a thread ended.
    pub(super) unwound: u64,
    /// Functions with entries that have no end of any kind.
    pub(super) unbalanced: usize,
    pub(super) stopped_ns: u64,
    pub(super) ended_because: String,
}

/// The C and C++ libraries, which are in all of them, and the loader.
fn is_own(module: &str) -> bool {
    const SHARED: [&str; 6] = [
        "ld-linux",
        "libc.so",
        "libgcc_s.so",
        "libm.so",
        "libpthread.so",
        "libstdc++.so",
    ];
    let name = module.rsplit('/').next().unwrap_or(module);
    !SHARED.iter().any(|shared| name.starts_with(shared))
}

impl Recorded {
    pub(super) fn read(hopscope: &Hopscope, file: &Path) -> Result<Recorded> {
        let reader = TraceReader::open(file).map_err(|source| Error::Recording {
            path: file.into(),
            source,
        })?;
        let tables = reader.tables();
        let own: Vec<bool> = tables.modules.iter().map(|m| is_own(&m.path)).collect();
        let own_accepted = tables.functions.iter();
        let own_accepted = own_accepted.filter(|f| own.get(f.module.0 as usize) == Some(&true));
        let refused = tables.refusals.iter().filter(|r| is_own(&r.module));
        let mut because = BTreeMap::new();
        for refusal in refused.clone() {
            *because.entry(without_numbers(&refusal.reason)).or_default() += 1;
        }
        let summary = tables.summary.as_ref();
        let (unwound, unbalanced) = balance(hopscope, file)?;
        Ok(Recorded {
            accepted: tables.functions.len(),
            refused: tables.refusals.len(),
            own_accepted: own_accepted.count(),
            own_refused: refused.count(),
            own_refused_because: because,
            records: summary.map_or(0, |s| s.recorded),
            lost: summary.map_or(0, |s| s.lost),
            unwound,
            unbalanced,
            stopped_ns: summary
                .and_then(|s| s.attach_pause_ns.iter().copied().max())
                .unwrap_or(0),
            ended_because: summary.map_or_else(String::new, |s| s.ended_because.clone()),
        })
    }

    /// Accepted of a hundred of its own functions.
    pub(super) fn own_percent(&self) -> f64 {
        100.0 * self.own_accepted as f64 / (self.own_accepted + self.own_refused).max(1) as f64
    }
}

/// Calls that were unwound, and functions whose calls do not all have an end.
fn balance(hopscope: &Hopscope, file: &Path) -> Result<(u64, usize)> {
    let text = hopscope.ask(&["report", &file.display().to_string(), "--json"])?;
    let (mut unwound, mut unbalanced) = (0, 0);
    for line in text.lines() {
        let Ok(row) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let Some(balance) = row["balance"]
            .as_object()
            .filter(|_| row["type"] == "function")
        else {
            continue;
        };
        let of = |name: &str| balance.get(name).and_then(Value::as_u64).unwrap_or(0);
        const ENDS: [&str; 7] = [
            "exits",
            "tail_exits",
            "open_at_end",
            "declared_lost",
            "cut_by_loss",
            "unwound",
            "moved",
        ];
        unwound += of("unwound");
        unbalanced += usize::from(of("entries") != ENDS.into_iter().map(of).sum::<u64>());
    }
    Ok((unwound, unbalanced))
}

/// Reasons that differ in an address only are one.
fn without_numbers(reason: &str) -> String {
    let mut out = String::new();
    for word in reason.split(' ') {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        let end = if word.ends_with(',') { "," } else { "" };
        match is_number {
            true => out += &format!("N{end}"),
            false => out += word,
        }
        out.push(' ');
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_without_their_numbers() {
        let reason = "something branches to 0x12af, inside the bytes the jump replaces";
        let expected = "something branches to N, inside the bytes the jump replaces";
        assert_eq!(without_numbers(reason), expected);
    }

    #[test]
    fn libraries_of_every_program_are_not_its_own() {
        assert!(!is_own("/usr/lib/x86_64-linux-gnu/libc.so.6") && !is_own("libstdc++.so.6.0.30"));
        assert!(is_own("/usr/bin/node") && is_own("libcrypto.so.3"));
    }
}
