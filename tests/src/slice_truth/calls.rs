//! What both ends of `tests/programs/slice/truth.c` know of their own calls.
use anyhow::{Context, Result, bail};
use std::collections::HashMap;
use std::path::Path;

/// One call that wrote or read bytes; instants in ns of `CLOCK_MONOTONIC` around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// Place of the first byte in the stream; of UDP, the message's number.
    pub(super) at: u64,
    pub(super) bytes: u64,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) tgid: u32,
    pub(super) tid: u32,
}

/// One direction of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Direction {
    pub(super) client_port: u16,
    pub(super) is_from_server: bool,
}

/// In order of `at`.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// TCP's sequence number of the first byte.
    pub(super) first: u32,
    pub(super) sent: Vec<Call>,
    pub(super) received: Vec<Call>,
}

pub(super) fn read(directory: &Path) -> Result<HashMap<Direction, Calls>> {
    let mut all: HashMap<Direction, Calls> = HashMap::new();
    for end in ["client", "server"] {
        let text = std::fs::read_to_string(directory.join(end))?;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if let &["first", who, port, number] = words.as_slice() {
                let direction = direction(who, port)?;
                all.entry(direction).or_default().first = number.parse()?;
                continue;
            }
            let &[what, who, port, at, bytes, before, after, tgid, tid] = words.as_slice() else {
                bail!("{line}");
            };
            let call = Call {
                at: at.parse()?,
                bytes: bytes.parse()?,
                before: before.parse()?,
                after: after.parse()?,
                tgid: tgid.parse()?,
                tid: tid.parse()?,
            };
            let calls = all.entry(direction(who, port)?).or_default();
            match what {
                "sent" => calls.sent.push(call),
                _ => calls.received.push(call),
            }
        }
    }
    for calls in all.values_mut() {
        calls.sent.sort_by_key(|call| call.at);
        calls.received.sort_by_key(|call| call.at);
    }
    Ok(all)
}

fn direction(who: &str, client_port: &str) -> Result<Direction> {
    Ok(Direction {
        client_port: client_port.parse()?,
        is_from_server: who == "server",
    })
}

/// The call that wrote or read the byte of the stream; of UDP, the message of that number.
pub(super) fn of(calls: &[Call], at: u64, is_stream: bool) -> Result<&Call> {
    let next = calls.partition_point(|call| call.at <= at);
    let call = next.checked_sub(1).map(|index| &calls[index]);
    call.filter(|call| at < call.at + if is_stream { call.bytes } else { 1 })
        .with_context(|| format!("nobody's: {at}"))
}
