//! The same for people.
use super::compared::Row as Network;
use super::headline::Headline;
use super::rings::Row as Queue;
use crate::ratio::ratio_text;
use crate::table::{Table, closing};
use std::fmt::Write;

pub(super) fn all(headline: &Headline, queues: &[Queue], networks: &[Network]) -> String {
    let mut out = String::new();
    headline_text(&mut out, headline);
    out.push_str(
        "\none queue, 64 B, our front end to our back end, which drops them; medians of rounds\n",
    );
    let head = [
        "kicks",
        "offered/s",
        "Mpps",
        "kicks/pkt",
        "calls/pkt",
        "p50 us",
        "p99 us",
        "front ns/pkt",
        "back ns/pkt",
        "switches/pkt",
    ];
    let mut rows = Table::new(1, head);
    for row in queues {
        rows.row(queue(row));
    }
    let _ = write!(out, "{rows}");
    out.push_str(
        "\ntwo networks joined by a queue pair (TAP, front end, back end, TAP); medians of rounds\n\
         (x: median of the ratios to event-idx in the same round, 10th to 90th percentile; vmstat's columns)\n",
    );
    for row in networks {
        let _ = writeln!(out, "{}", network(row));
    }
    out
}

fn headline_text(out: &mut String, headline: &Headline) {
    out.push_str("where two-end aggregation (TAM) does not win: TAM over …\n");
    for row in &headline.tam_does_not_win {
        let value = row.ratio.map_or("-".into(), |r| format!("{r:.2}"));
        let _ = writeln!(out, "  {:<68} {value:>6}", row.at);
    }
    out.push_str("TAM over AHC (ahc:50:64), as the source has it and as measured, no offloads\n");
    for claim in &headline.claims {
        let value = claim.measured.map_or("-".into(), |r| format!("{r:.2}"));
        let _ = writeln!(out, "  {:<34} {:.2}  {value:>6}", claim.of, claim.claimed);
    }
    let _ = writeln!(
        out,
        "adaptive over the best fixed policy ({}), saturated: {}\n\
         p50 at 1,000 packets a second, over plain: adaptive {}, ahc {}",
        headline.best_fixed.unwrap_or("-"),
        ratio_text(headline.adaptive_vs_best_fixed),
        ratio_text(headline.adaptive_latency_vs_plain_1kpps),
        ratio_text(headline.ahc_latency_vs_plain_1kpps),
    );
    out.push_str(&closing(&headline.goals, &[]));
}

fn queue(row: &Queue) -> [String; 10] {
    [
        row.policy.name.to_string(),
        row.offered.to_string(),
        format!("{:.3}", row.packets_per_s.median / 1e6),
        format!("{:.5}", row.kicks_per_packet.median),
        format!("{:.5}", row.calls_per_packet.median),
        format!("{:.1}", row.p50_us.median),
        format!("{:.1}", row.p99_us.median),
        format!("{:.0}", row.front_cpu_ns_per_packet),
        format!("{:.0}", row.back_cpu_ns_per_packet),
        format!(
            "{:.3}+{:.3}",
            row.front_switches_per_packet, row.back_switches_per_packet
        ),
    ]
}

fn network(row: &Network) -> String {
    let x = row.vs_event_idx.map_or("-".into(), |x| {
        format!("{:.2} ({:.2} .. {:.2})", x.median, x.p10, x.p90)
    });
    let p50 = row.p50_us.map_or("-".into(), |us| format!("{us:.1}"));
    let v = &row.vmstat;
    format!(
        "{:<17} {:<11} {:<10} {:>9.0} {:<14} x {x:<20} p50 {p50:>7} us  kicks {:.4} calls {:.4} a packet  \
         us {:.0} sy {:.0} id {:.0} wa {:.0} in {:.0} cs {:.0}",
        row.load,
        if row.offload { "offload" } else { "no offload" },
        row.policy.name,
        row.value.median,
        row.unit,
        row.kicks_per_packet,
        row.calls_per_packet,
        v.us,
        v.sy,
        v.id,
        v.wa,
        v.interrupts,
        v.cs
    )
}
