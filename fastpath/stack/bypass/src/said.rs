//! What is told as it happens, and in sum when a process ends.
use crate::calls;
use crate::contract::{Call, Family, LIBRARY, Process, Row};
use std::collections::BTreeMap;
use std::fs;

/// The first of a process's calls at a place; None: it is the library's own after all.
///
/// `is_inline`: sockets of the stack's have one of the kernel's in their place.
pub(crate) fn first(call: &Call, is_inline: bool) -> Option<String> {
    let file = match &call.file {
        Some(file) => Some(file.clone()),
        None => mapped(call),
    };
    let place = match file {
        Some((name, _)) if name == LIBRARY => return None,
        Some((name, offset)) if !name.is_empty() => format!("{name}+{offset:#x}"),
        Some(_) => format!("{:#x}, where no file is mapped", call.at),
        None => format!("{:#x}", call.at),
    };
    let whose = if is_inline {
        ", the stack's or the kernel's"
    } else {
        ""
    };
    let of = match (call.fd, call.family) {
        (None, Family::Inet) => " (IPv4)".into(),
        (None, Family::Inet6) => " (IPv6)".into(),
        (None, _) => String::new(),
        (Some(fd), Family::Stack) => format!(" of fd {fd} (a socket of the stack's)"),
        (Some(fd), Family::Inet) => format!(" of fd {fd} (IPv4{whose})"),
        (Some(fd), Family::Inet6) => format!(" of fd {fd} (IPv6{whose})"),
        (Some(fd), Family::Other) => format!(" of fd {fd}"),
    };
    let process = named(&call.process);
    let what = calls::name(call.number);
    Some(format!(
        "{process}: {what}{of} by-passed the hooks, from {place}"
    ))
}

fn named(process: &Process) -> String {
    format!("{}[{}]", process.name, process.number)
}

/// The program could not look: /proc/PID/maps is asked, if the process is still there.
fn mapped(call: &Call) -> Option<(String, u64)> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", call.process.number)).ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (from, to) = fields.next()?.split_once('-')?;
        let number = |hex: &str| u64::from_str_radix(hex, 16).ok();
        let (from, to) = (number(from)?, number(to)?);
        if !(from..to).contains(&call.at) {
            return None;
        }
        let offset = number(fields.nth(1)?)?;
        let path = fields.nth(2).unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        Some((name.into(), call.at - from + offset))
    })
}

/// All of a process's calls by name; None: there were none.
pub(crate) fn sum(process: &Process, rows: &[Row]) -> Option<String> {
    let mut calls: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows {
        *calls.entry(calls::name(row.number)).or_default() += row.calls;
    }
    let calls: Vec<String> = calls
        .iter()
        .map(|(name, calls)| format!("{calls} {name}"))
        .collect();
    (!calls.is_empty()).then(|| {
        format!(
            "{}: by-passed the hooks: {}",
            named(process),
            calls.join(", ")
        )
    })
}
