use super::*;
use hopscope_analyze::slice::SliceStats;
use hopscope_event::slice::sample::{
    dropped, entry, frame, over_veth, record, stamped, summary, through_queue, without_bytes,
};
use hopscope_event::slice::{Point, SliceEvent, SliceFlags, SliceRecord, StampWord};
use hopscope_event::{ClockSync, Tsc};
use serde_json::Value;

fn time() -> RealTime {
    let start = ClockSync {
        tsc: Tsc(0),
        monotonic_ns: 0,
        realtime_ns: 1_763_701_929_000_000_000,
        window_ticks: 0,
    };
    RealTime::new(start, &[])
}

fn shown(entry: &SliceEntry, view: SliceView, packets: &[Sliced]) -> String {
    let time = time();
    let mut slicer = Slicer::new(entry);
    let source = SliceSource { entry, time: &time };
    let mut printer = SlicePrinter::new(view);
    let mut out = Vec::new();
    for packet in packets {
        let slices = slicer.slice(&packet.record);
        let done = printer.packet(&mut out, source.sliced(packet, &slices, &slicer));
        done.unwrap();
    }
    String::from_utf8(out).unwrap()
}

fn line(record: SliceRecord) -> String {
    shown(&entry(), SliceView::default(), &[without_bytes(record)])
}

#[test]
fn a_line_a_packet() {
    assert_eq!(
        line(through_queue(1)),
        "05:12:10.000050000 veth0 > IP 10.0.0.1.40000 > 10.0.0.2.80: Flags [P.], \
         seq 1000064:1000128, ack 2000000, win 502, length 64 | curl[123] tx call .54 \
         transport 1.01 ip .64 qdisc_in .18 qdisc .27 dequeued .22 driver+finish .33 us | \
         total 3.02us\n"
    );
}

#[test]
fn both_ends_of_a_packet_that_went_past_the_queue() {
    let line = line(over_veth(1));
    assert!(line.contains(" veth0 > veth1 IP "), "{line}");
    let times = line.split_once("length 64 | ").unwrap().1;
    assert_eq!(
        times,
        "curl[123] tx call .6 transport 1.02 ip .67 qdisc_in+dequeued .21 qdisc bypass \
         driver .23 finish .15 | nginx[77] rx backlog .31 \
         ip .45 transport .25 socket 1.09 wake ~0 schedule 4.35? resume .65 copy .29 \
         receive .36 return .13 us | total 10.3us?\n"
    );
}

#[test]
fn a_drop_has_its_reason() {
    let line = line(dropped(1));
    assert!(
        line.contains("> veth1 IP 10.0.0.1.40000 > 10.0.0.2.80: UDP, length 64 |"),
        "{line}"
    );
    assert!(
        line.ends_with("us | total .95us DROPPED (NO_SOCKET)\n"),
        "{line}"
    );
    let mut unknown = dropped(1);
    unknown.drop_reason = 99;
    unknown.flags |= SliceFlags::MERGED;
    let line = self::line(unknown);
    assert!(line.ends_with("DROPPED (reason 99) [merged]\n"), "{line}");
}

#[test]
fn ipv6_icmp_and_other_protocols() {
    let mut six = through_queue(1);
    six.family = 6;
    six.source = std::net::Ipv6Addr::LOCALHOST.octets();
    six.destination = "fe80::2".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let head = |record| line(record).split(" | ").next().unwrap().to_owned();
    assert!(head(six).contains("IP6 ::1.40000 > fe80::2.80: Flags [P.]"));
    let mut ping = through_queue(1);
    (ping.protocol, ping.ip_len) = (1, 84);
    assert!(head(ping).ends_with("IP 10.0.0.1 > 10.0.0.2: ICMP, length 64"));
    let mut bytes = frame(&ping);
    bytes.bytes[14 + 20..14 + 28].copy_from_slice(&[8, 0, 0, 0, 0, 7, 1, 2]);
    let packet = Sliced {
        record: ping,
        bytes: Some(bytes),
    };
    let text = shown(&entry(), SliceView::default(), &[packet]);
    assert!(
        text.contains(": ICMP echo request, id 7, seq 258, length 64 |"),
        "{text}"
    );
    ping.protocol = 47;
    assert!(head(ping).ends_with("ip-proto-47, length 64"));
}

#[test]
fn numbers_are_relative_after_the_first_packet() {
    let packets = [1, 2].map(|id| without_bytes(through_queue(id)));
    let text = shown(&entry(), SliceView::default(), &packets);
    assert!(
        text.lines().nth(1).unwrap().contains("seq 64:128, ack 1,"),
        "{text}"
    );
    let quiet = SliceView {
        quiet: true,
        ..SliceView::default()
    };
    assert!(shown(&entry(), quiet, &packets).contains("10.0.0.2.80: tcp 64 | "));
}

#[test]
fn a_table_shows_what_was_taken_out() {
    let view = SliceView {
        table: true,
        ..SliceView::default()
    };
    let text = shown(&entry(), view, &[without_bytes(over_veth(1))]);
    let row = |name: &str| {
        let mut lines = text
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        let found = lines.find(|words| words.first() == Some(&name));
        found
            .unwrap_or_else(|| panic!("{name} in {text}"))
            .join(" ")
    };
    assert_eq!(
        row("tx.call"),
        "tx.call tx_syscall..tx_transport 671 70 601"
    );
    assert_eq!(
        row("rx.wake"),
        "rx.wake rx_socket..rx_waking 250 270 0 below_zero"
    );
    assert_eq!(row("tx.qdisc"), "tx.qdisc bypass");
    assert_eq!(row("whole"), "whole 12,068 1,770 10,298 other_cpu");
    assert_eq!(row("rx.backlog"), "rx.backlog tx_done..rx_core 380 70 310");
    assert!(
        text.contains("sent by curl 123/124, 64 bytes a call, socket 11;"),
        "{text}"
    );
}

/// Whatever names are, numbers stand below each other.
#[test]
fn long_names_do_not_break_columns() {
    let mut long = entry();
    for region in &mut long.regions {
        region.name += &".which-has-a-name".repeat(3);
    }
    let view = SliceView {
        table: true,
        ..SliceView::default()
    };
    let table = shown(&long, view, &[without_bytes(over_veth(1))]);
    let time = time();
    let mut slicer = Slicer::new(&long);
    let mut stats = SliceStats::default();
    stats.add(&slicer.slice(&over_veth(1)));
    let closing = SliceClosing {
        source: SliceSource {
            entry: &long,
            time: &time,
        },
        slicer: &slicer,
        stats: &stats,
        read: None,
        damage: None,
        summary: None,
    };
    let mut out = Vec::new();
    write_slice_closing(&mut out, &closing).unwrap();
    let closing = String::from_utf8(out).unwrap();
    for (text, heading) in [(&table, " read "), (&closing, " count ")] {
        let mut lines = text.lines().skip_while(|line| !line.contains(heading));
        let first = lines.next().unwrap();
        let end = first.find(heading).unwrap() + heading.len() - 1;
        let rows: Vec<&str> = lines
            .filter(|line| line.contains("which-has") || line.trim_start().starts_with("whole"))
            .filter(|line| !line.contains("bypass"))
            .collect();
        assert!(rows.len() > 10, "{text}");
        for row in rows {
            assert_eq!(row.as_bytes()[end], b' ', "{row}");
            assert!(row.as_bytes()[end - 1].is_ascii_digit(), "{row}");
        }
    }
}

#[test]
fn bytes_are_laid_out_as_tcpdump_does() {
    let record = through_queue(1);
    let packet = Sliced {
        record,
        bytes: Some(frame(&record)),
    };
    let with = |view: SliceView| {
        let text = shown(&entry(), view, std::slice::from_ref(&packet));
        text.split_once('\n').unwrap().1.to_owned()
    };
    let x = with(SliceView {
        hex: 1,
        ..SliceView::default()
    });
    assert!(
        x.starts_with("\t0x0000:  4500 0068 0001 4000 4006 0000 0a00 0001\n"),
        "{x}"
    );
    let xx = with(SliceView {
        hex_ascii: 2,
        ..SliceView::default()
    });
    assert!(
        xx.starts_with("\t0x0000:  0200 0000 0002 0200 0000 0001 0800 4500  ..............E.\n"),
        "{xx}"
    );
    let last = xx.lines().last().unwrap();
    assert_eq!(
        last,
        "\t0x0070:  696a 6b6c 6d6e                           ijklmn"
            .replace("696a 6b6c 6d6e", "6768 696a 6b6c")
            .replace("ijklmn", "ghijkl")
    );
    let a = with(SliceView {
        ascii: 1,
        ..SliceView::default()
    });
    assert!(a.contains("abcdefghijklmnopqrstuvwxyzabc"), "{a}");
    let e = shown(
        &entry(),
        SliceView {
            link: true,
            ..SliceView::default()
        },
        &[packet],
    );
    let link = "02:00:00:00:00:01 > 02:00:00:00:00:02, ethertype IPv4 (0x0800), length 118, IP";
    assert!(e.contains(link), "{e}");
}

#[test]
fn events_are_numbers_without_a_time() {
    let mut counted = entry();
    counted.event = SliceEvent::Counter("context-switches".into());
    counted.calibration = Default::default();
    let two = stamped(
        record(1),
        &[(Point::TxSyscall, 0, 0, 0), (Point::TxTransport, 3, 0, 0)],
    );
    let text = shown(&counted, SliceView::default(), &[without_bytes(two)]);
    assert!(
        text.ends_with("curl[123] tx call 3 context-switches | total 3 context-switches\n"),
        "{text}"
    );
}

#[test]
fn names_do_not_steer_the_terminal() {
    let mut rude = through_queue(1);
    rude.tx_comm = *b"\x1b[2Jxxxxxxxxxxxx";
    let mut entry = entry();
    entry.regions[0].name = "tx.\x1b[2J".into();
    entry.interfaces[0].name = "\x07".into();
    let text = shown(
        &entry,
        SliceView {
            table: true,
            ..SliceView::default()
        },
        &[without_bytes(rude)],
    );
    assert!(!text.contains(['\x1b', '\x07']), "{text:?}");
}

fn json_of(packet: &Sliced) -> Value {
    let (entry, time) = (entry(), time());
    let mut slicer = Slicer::new(&entry);
    let slices = slicer.slice(&packet.record);
    let mut out = Vec::new();
    let source = SliceSource {
        entry: &entry,
        time: &time,
    };
    write_slice_json(&mut out, source.sliced(packet, &slices, &slicer)).unwrap();
    assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 1);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn an_object_a_packet() {
    let object = json_of(&without_bytes(over_veth(1)));
    assert_eq!(
        (&object["type"], &object["schema"]),
        (&"slice".into(), &1.into())
    );
    let slices = object["slices"].as_array().unwrap();
    assert_eq!(slices.len(), 16);
    let sum: u64 = slices.iter().map(|s| s["raw_ns"].as_u64().unwrap()).sum();
    assert_eq!(object["whole"]["raw_ns"].as_u64(), Some(sum));
    assert_eq!(slices[0]["region"], "tx.call");
    assert_eq!(
        (&slices[0]["from"], &slices[0]["to"]),
        (&"tx_syscall".into(), &"tx_transport".into())
    );
    assert_eq!(
        (&slices[0]["correction_ns"], &slices[0]["corrected_ns"]),
        (&70.into(), &601.into())
    );
    assert_eq!(object["tx"]["comm"], "curl");
    assert_eq!(
        (&object["tx"]["tid"], &object["rx"]["pid"]),
        (&124.into(), &77.into())
    );
    assert_eq!(
        (&object["source"], &object["source_port"]),
        (&"10.0.0.1".into(), &40_000.into())
    );
    assert_eq!(
        (&object["bypassed"], &object["drop_reason"]),
        (&serde_json::json!(["tx.qdisc"]), &Value::Null)
    );
    let object = json_of(&without_bytes(dropped(1)));
    assert_eq!(
        (&object["drop_reason"], &object["tx"]["pid"]),
        (&"NO_SOCKET".into(), &Value::Null)
    );
    assert_eq!(object["flags"], serde_json::json!(["dropped"]));
}

#[test]
fn the_end_says_what_was_captured_lost_and_spent() {
    let (entry, time) = (entry(), time());
    let mut slicer = Slicer::new(&entry);
    let (mut stats, mut late) = (SliceStats::default(), SliceStats::default());
    for id in 0..20 {
        let mut record = over_veth(id);
        stats.add(&slicer.slice(&record));
        record.stamps[Point::RxCore as usize] = StampWord::new(3_200, 0, 1);
        if id == 0 {
            late.add(&slicer.slice(&record));
        }
        stats.add(&slicer.slice(&through_queue(id)));
    }
    assert_eq!((stats.out_of_order, late.out_of_order), (0, 1));
    let mut summary = summary(40);
    summary.hooks[2].missed_runs = Some(3);
    let mut closing = SliceClosing {
        source: SliceSource {
            entry: &entry,
            time: &time,
        },
        slicer: &slicer,
        stats: &stats,
        read: None,
        damage: None,
        summary: Some(&summary),
    };
    let mut out = Vec::new();
    write_slice_closing(&mut out, &closing).unwrap();
    let text = String::from_utf8(out).unwrap();
    for line in [
        "40 packets captured\n",
        "43 packets received by filter\n",
        "2 packets lost by hopscope\n",
        "0 packets dropped by the kernel\n",
        "  no_slot                   2  chosen packets that found no free slot",
        "  3 runs missed at tx_ip_out: ",
        "probes cost about 64.0 µs, less than 0.01 % of a processor; 1.47 µs per chosen packet; 373 ns per other packet",
        "an empty region reads 70 ns (62 to 78): taken out of each slice\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let row = |name: &str| {
        let mut lines = text
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        lines.find(|w| w.first() == Some(&name)).unwrap().join(" ")
    };
    assert_eq!(row("tx.call"), "tx.call 40 .54 .54 .6 .6 .03");
    assert_eq!(row("rx.wake"), "rx.wake 20 0 0 0 0 0 20 ~0");
    assert_eq!(row("rx.backlog"), "rx.backlog 20 .31 .31 .31 .31 0");
    let mut out = Vec::new();
    write_slice_closing_json(&mut out, &closing).unwrap();
    let object: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        (&object["type"], &object["packets"]),
        (&"slice_summary".into(), &40.into())
    );
    assert_eq!(object["summary"]["counters"]["no_slot"], 2);
    assert_eq!(object["slices"][0]["region"], "tx.call");
    // Nothing was chosen, and the hooks cost what they cost.
    let (nothing, mut idle) = (SliceStats::default(), summary.clone());
    for name in ["created", "written"] {
        idle.counters.0.insert(name.into(), 0);
    }
    (closing.stats, closing.summary) = (&nothing, Some(&idle));
    let mut out = Vec::new();
    write_slice_closing(&mut out, &closing).unwrap();
    let text = String::from_utf8(out).unwrap();
    let cost =
        "probes cost about 64.0 µs, less than 0.01 % of a processor; 6.40 µs per other packet";
    assert!(text.contains(cost), "{text}");
    (closing.stats, closing.summary) = (&stats, None);
    (closing.read, closing.damage) = (Some(50), Some("at byte 7: torn"));
    let mut out = Vec::new();
    write_slice_closing(&mut out, &closing).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains("40 packets chosen of 50 read\nDAMAGED: at byte 7: torn\nnot ended"),
        "{text}"
    );
}
