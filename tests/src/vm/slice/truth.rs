//! What both ends of `tests/programs/slice/exchange.c` know of each message.
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Instants in ns of `CLOCK_MONOTONIC`, around the system calls.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) protocol: u64,
    pub(super) family: u64,
    pub(super) is_from_server: bool,
    pub(super) bytes: u64,
    pub(super) sender: u64,
    pub(super) receiver: u64,
    pub(super) send: RangeInclusive<u64>,
    pub(super) receive: RangeInclusive<u64>,
}

/// `tcp-4`, `udp-6` … and after each the lines of both ends.
pub(super) fn read(text: &str) -> Result<Vec<Message>> {
    let mut sent = BTreeMap::new();
    let mut messages = Vec::new();
    let mut pending = Vec::new();
    let (mut protocol, mut family) = (0, 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            [run] => {
                let (name, version) = run.split_once('-').context("PROTOCOL-FAMILY")?;
                protocol = if name == "tcp" { 6 } else { 17 };
                family = version.parse()?;
            }
            &[what, _, who, bytes, before, after, tid] => {
                let key = (protocol, family, who == "server", bytes.parse::<u64>()?);
                let seen = (before.parse()?..=after.parse()?, tid.parse::<u64>()?);
                match what {
                    "sent" => drop(sent.insert(key, seen)),
                    "received" => pending.push((key, seen)),
                    _ => bail!("{line}"),
                }
            }
            _ => bail!("{line}"),
        }
    }
    for (key, (receive, receiver)) in pending {
        let (send, sender) = sent.remove(&key).context("received, but not sent")?;
        let (protocol, family, is_from_server, bytes) = key;
        messages.push(Message {
            protocol,
            family,
            is_from_server,
            bytes,
            sender,
            receiver,
            send,
            receive,
        });
    }
    ensure!(sent.is_empty(), "sent, but not received: {sent:?}");
    Ok(messages)
}
