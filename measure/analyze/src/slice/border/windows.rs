//! The part of a system call that a packet's record knows.
use hopscope_event::slice::{Point, SliceRecord};

const TCP: u8 = 6;

/// On one thread, on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub from_ns: u64,
    pub to_ns: u64,
}

fn at(record: &SliceRecord, point: Point) -> Option<u64> {
    let word = record.stamp(point).filter(|word| !word.is_saturated())?;
    Some(record.t0_ns.saturating_add(word.delta().into()))
}

pub(super) fn received(record: &SliceRecord) -> Option<Window> {
    let to_ns = at(record, Point::RxReturn)?;
    let from_ns = at(record, Point::RxCopy).unwrap_or(to_ns).min(to_ns);
    Some(Window { from_ns, to_ns })
}

/// Nothing tells when the sending call returned: its thread gives no further stamp.
pub(super) fn sent(record: &SliceRecord) -> Option<Window> {
    let from_ns = at(record, Point::TxSyscall)?;
    let to_ns = at(record, Point::TxTransport).unwrap_or(from_ns);
    Some(Window {
        from_ns,
        to_ns: to_ns.max(from_ns),
    })
}

/// Whether what the receiving call returned is in part of this packet, by sequence number.
pub(super) fn has_bytes_of(record: &SliceRecord) -> bool {
    if record.protocol != TCP || record.payload == 0 {
        return true;
    }
    let Ok(returned) = u32::try_from(record.rx_returned) else {
        return false;
    };
    // Serial numbers (RFC 1982): differences wrap.
    let ahead = record.tcp_seq.wrapping_sub(record.rx_call_seq);
    let behind = record.rx_call_seq.wrapping_sub(record.tcp_seq);
    ahead < returned || behind < record.payload
}

/// In order, those of one system call as one.
pub(super) fn merged(mut windows: Vec<Window>) -> Vec<Window> {
    windows.sort_by_key(|w| (w.from_ns, w.to_ns));
    windows.dedup_by(|next, kept| {
        let is_one = next.from_ns <= kept.to_ns;
        if is_one {
            kept.to_ns = kept.to_ns.max(next.to_ns);
        }
        is_one
    });
    windows
}
