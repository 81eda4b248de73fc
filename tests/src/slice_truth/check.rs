//! One record against the calls at both ends.
use super::calls::{self, Call, Calls, Direction};
use super::traffic::{PORTS, Traffic, port};
use anyhow::{Context, Result, ensure};
use hopscope_event::slice::{Counter, Point, SliceFlags, SliceRecord, SliceSummary, Sliced};
use std::collections::HashMap;

/// What a record with a reader holds of its direction's bytes; of UDP: messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) arrived: Option<u64>,
}

pub(super) type Found = HashMap<Direction, Vec<Read>>;

/// After these the reader is in its call.
const OF_THE_CALL: [Point; 3] = [Point::RxCopied, Point::RxReceived, Point::RxReturn];

pub(super) fn records(
    traffic: &Traffic,
    records: &[Sliced],
    calls: &HashMap<Direction, Calls>,
    summary: &SliceSummary,
) -> Result<Found> {
    let is_stream = traffic.is_stream();
    let mut found = Found::new();
    let (mut checked, mut without_bytes) = (0, 0);
    for sliced in records {
        let record = &sliced.record;
        // The first datagram of each side has one byte and is not of the messages.
        if record.payload == 0 || (!is_stream && record.payload == 1) {
            continue;
        }
        let direction = direction(record);
        let calls = calls.get(&direction);
        let calls = calls.with_context(|| format!("no flow: {record:?}"))?;
        let at = match is_stream {
            true => u64::from(record.tcp_seq.wrapping_sub(calls.first)),
            false => match number(sliced) {
                Some(at) => at,
                None => {
                    without_bytes += 1;
                    continue;
                }
            },
        };
        one(traffic, record, at, calls).with_context(|| format!("at {at}: {record:?}"))?;
        checked += 1;
        if record.rx_tid != 0 {
            let bytes = if is_stream {
                u64::from(record.payload)
            } else {
                1
            };
            let read = Read {
                from: at,
                to: at + bytes,
                arrived: instant(record, Point::RxDriver),
            };
            found.entry(direction).or_default().push(read);
        }
    }
    ensure!(checked > 0, "no record has data");
    let lost = summary.counters.get(Counter::BytesLost);
    ensure!(
        without_bytes <= lost,
        "{without_bytes} without their number, the bytes of {lost} are lost"
    );
    Ok(found)
}

fn direction(record: &SliceRecord) -> Direction {
    let is_from_server = (port()..port() + PORTS).contains(&record.source_port);
    Direction {
        client_port: match is_from_server {
            true => record.destination_port,
            false => record.source_port,
        },
        is_from_server,
    }
}

fn number(sliced: &Sliced) -> Option<u64> {
    let header = if sliced.record.family == 6 { 48 } else { 28 };
    let bytes = sliced.network_bytes()?.get(header..header + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

fn one(traffic: &Traffic, record: &SliceRecord, at: u64, calls: &Calls) -> Result<()> {
    let is_stream = traffic.is_stream();
    let sent = calls::of(&calls.sent, at, is_stream).context("sent")?;
    let (tx, rx) = match direction(record).is_from_server {
        true => ("truth-server", "truth-client"),
        false => ("truth-client", "truth-server"),
    };
    if record.tx_tid != 0 {
        ensure!(
            is_by(sent, record.tx_tgid, record.tx_tid),
            "sent by {sent:?}"
        );
        ensure!(comm(&record.tx_comm) == tx, "sender's name");
        if is_stream {
            let from = at as u32 - record.tcp_seq.wrapping_sub(record.tx_call_seq);
            ensure!(
                u64::from(from) == sent.at,
                "the call begins at {from}: {sent:?}"
            );
        }
        for point in [Point::TxSyscall, Point::TxTransport] {
            within(record, point, sent.before, sent.after)?;
        }
    }
    let last = if is_stream {
        at + u64::from(record.payload) - 1
    } else {
        at
    };
    for (point, _) in record.taken() {
        within(record, point, sent.before, u64::MAX)?;
    }
    // What was sent may be lost, and what arrived left unread.
    let received = calls::of(&calls.received, last, is_stream);
    if record.rx_tid != 0 {
        let received = received.context("received")?;
        for (point, _) in record.taken() {
            // The sending driver returns when it gets a processor again.
            if point != Point::TxDone {
                within(record, point, 0, received.after)?;
            }
        }
        ensure!(
            is_by(received, record.rx_tgid, record.rx_tid),
            "read by {received:?}"
        );
        ensure!(comm(&record.rx_comm) == rx, "reader's name");
        for point in OF_THE_CALL {
            within(record, point, received.before, received.after)?;
        }
        if record.stamp(Point::RxReturn).is_some() {
            ensure!(
                record.rx_returned as u64 == returned(traffic, received),
                "{received:?}"
            );
            // Bytes that are only looked at are read later, by another call.
            if is_stream && traffic.reader != "peek" {
                let from = u64::from(record.rx_call_seq.wrapping_sub(calls.first));
                ensure!(from == received.at, "read from {from}: {received:?}");
            }
        }
        copy_begins(traffic, record, at, calls, received)?;
    } else if !is_stream && received.is_ok() {
        // TCP drops what it has already; a message is there once.
        let is_dropped = record.flags.contains(SliceFlags::DROPPED);
        ensure!(
            !(is_dropped && record.stamp(Point::RxIp).is_some()),
            "it was read, and is said to be dropped"
        );
    }
    in_order(record)
}

/// `recvmmsg` gives the number of messages.
fn returned(traffic: &Traffic, received: &Call) -> u64 {
    match traffic.reader {
        "recvmmsg" => 1,
        _ => received.bytes,
    }
}

/// In the call that read the first byte, or looked at it before.
fn copy_begins(
    traffic: &Traffic,
    record: &SliceRecord,
    at: u64,
    calls: &Calls,
    last: &Call,
) -> Result<()> {
    if traffic.reader == "peek" {
        return Ok(());
    }
    let first = calls::of(&calls.received, at, traffic.is_stream())?;
    within(record, Point::RxCopy, first.before, last.after)
}

fn is_by(call: &Call, tgid: u32, tid: u32) -> bool {
    call.tgid == tgid && call.tid == tid
}

fn comm(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(16);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn instant(record: &SliceRecord, point: Point) -> Option<u64> {
    Some(record.t0_ns + u64::from(record.stamp(point)?.delta()))
}

fn within(record: &SliceRecord, point: Point, from: u64, to: u64) -> Result<()> {
    let Some(instant) = instant(record, point) else {
        return Ok(());
    };
    ensure!(
        (from..=to).contains(&instant),
        "{point} at {instant}, not in {from} to {to}"
    );
    Ok(())
}

/// What one thing after another does to a packet is stamped in that order. The sending driver's return
/// and the reader's being woken are beside this.
fn in_order(record: &SliceRecord) -> Result<()> {
    let beside = [Point::TxDone, Point::RxWaking, Point::RxSchedIn];
    let points = record.taken().filter(|(point, _)| !beside.contains(point));
    let points: Vec<(Point, u32)> = points.map(|(point, word)| (point, word.delta())).collect();
    for pair in points.windows(2) {
        ensure!(pair[0].1 <= pair[1].1, "{} after {}", pair[0].0, pair[1].0);
    }
    Ok(())
}
