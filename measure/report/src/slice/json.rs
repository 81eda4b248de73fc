//! One JSON object a packet.
use super::{SliceSource, SlicedPacket, text};
use hopscope_analyze::slice::Span;
use hopscope_event::slice::{SliceFlags, SliceRecord};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Writes `{"type":"slice",…}` and a line's end. Numbers of a time end in `_ns`; of an event, in
/// nothing, and `unit` says what was counted.
///
/// # Errors
/// Those of `out`.
pub fn write_slice_json(out: &mut impl Write, sliced: SlicedPacket<'_>) -> io::Result<()> {
    let SlicedPacket {
        source,
        packet,
        slices,
        slicer,
    } = sliced;
    let (source, r) = (&source, &packet.record);
    let pieces: Vec<Value> = slices
        .pieces
        .iter()
        .map(|piece| {
            let mut object = span(source, &piece.span);
            object["region"] = slicer.name(piece.name).into();
            object["from"] = piece.from.name().into();
            object["to"] = piece.to.name().into();
            object
        })
        .collect();
    let regions = slices.regions.iter();
    let regions: Map<String, Value> = regions
        .map(|r| (slicer.region(r.region).into(), span(source, &r.span)))
        .collect();
    let bypassed = slices.bypassed.iter().map(|name| slicer.name(*name));
    let mut object = identity(source, r);
    object["slices"] = pieces.into();
    object["regions"] = regions.into();
    object["whole"] = span(source, &slices.whole);
    object["bypassed"] = bypassed.collect();
    object["out_of_order"] = slices.out_of_order.into();
    object["unit"] = source.unit().into();
    object["captured_bytes"] = json!(packet.bytes.as_ref().map(|b| b.bytes.len()));
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

pub(super) fn key(source: &SliceSource<'_>, name: &str) -> String {
    if source.is_time() {
        format!("{name}_ns")
    } else {
        name.to_owned()
    }
}

fn span(source: &SliceSource<'_>, span: &Span) -> Value {
    json!({
        key(source, "raw"): span.raw,
        key(source, "correction"): span.correction,
        key(source, "corrected"): span.corrected(),
        "flags": span.flags.names().collect::<Vec<_>>(),
    })
}

/// What is not known is `null`.
fn identity(source: &SliceSource<'_>, r: &SliceRecord) -> Value {
    let some = |n: u64| if n == 0 { Value::Null } else { n.into() };
    let side = |cookie, tgid: u32, tid: u32, comm, ifindex, netns: u32| {
        json!({
            "pid": some(tgid.into()),
            "tid": some(tid.into()),
            "comm": text::comm(comm),
            "interface": source.interface(netns, ifindex),
            "netns": some(netns.into()),
            "socket": some(cookie),
        })
    };
    let flags = r.flags.to_string();
    let flags: Vec<&str> = match r.flags {
        SliceFlags::NONE => Vec::new(),
        _ => flags.split('+').collect(),
    };
    let dropped = r.flags.contains(SliceFlags::DROPPED);
    let has_ports = matches!(r.protocol, 6 | 17);
    let port = |port: u16| has_ports.then_some(port);
    let tcp = (r.protocol == 6).then(|| {
        json!({"seq": r.tcp_seq, "ack": r.tcp_ack, "window": r.tcp_window, "flags": r.tcp_flags})
    });
    json!({
        "type": "slice",
        "schema": 1,
        "id": r.id,
        "parent": some(r.parent),
        "realtime_ns": source.time.realtime_ns(r.t0_ns),
        "monotonic_ns": r.t0_ns,
        "family": r.family,
        "protocol": r.protocol,
        "source": r.source_address().ip().to_string(),
        "source_port": port(r.source_port),
        "destination": r.destination_address().ip().to_string(),
        "destination_port": port(r.destination_port),
        "tcp": tcp,
        "ip_id": r.ip_id,
        "length": r.payload,
        "ip_length": r.ip_len,
        "segments": r.segments.max(1),
        "tx": side(r.tx_cookie, r.tx_tgid, r.tx_tid, &r.tx_comm, r.tx_ifindex, r.tx_netns),
        "rx": side(r.rx_cookie, r.rx_tgid, r.rx_tid, &r.rx_comm, r.rx_ifindex, r.rx_netns),
        "sent_by_call": r.tx_call_len,
        "call_returned": r.rx_returned,
        "flags": flags,
        "drop_reason": dropped.then(|| source.drop_reason(r.drop_reason)),
    })
}
