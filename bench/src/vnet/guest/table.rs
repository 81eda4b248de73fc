//! The same for people.
use super::compared::Row;
use super::headline::{Figures, Headline, Over};
use crate::ratio::ratio_text;
use crate::table::closing;
use hopscope_guest::Accelerator;
use std::fmt::Write;

pub(super) fn all(figures: &Figures, headline: &Headline, rows: &[Row]) -> String {
    let mut out = String::new();
    if let Some(kernel) = &figures.guest_kernel {
        let machine = match &figures.accelerator {
            Accelerator::Kvm => "on this machine's processor (KVM)".to_owned(),
            Accelerator::Emulated { reason } => format!(
                "emulated (QEMU without KVM: {reason}): its times are an emulator's; counts are exact,\n\
                 and of times only ratios within a round compare"
            ),
        };
        let _ = writeln!(out, "Linux {kernel}, one processor, {machine}.\n");
    }
    if !rows.is_empty() {
        headline_text(&mut out, figures, headline);
        out.push_str(
            "\nkicks and calls a packet: of the queue from the guest (tx) and to it (rx); x: over each in the same round, 95 %\n",
        );
    }
    for row in rows {
        let _ = writeln!(out, "{}", line(row));
    }
    for missing in figures.left_out() {
        let _ = writeln!(out, "left out: {}: {}", missing.what, missing.reason);
    }
    out + &closing(&[], &figures.not_measured)
}

fn headline_text(out: &mut String, figures: &Figures, headline: &Headline) {
    let over = |row: &Over| {
        let of = format!("{} over {}", row.of, row.to);
        format!("  {:<36} {of:<22} {}", row.name(), ratio_text(row.ratio))
    };
    out.push_str("where batching does not win, or should not be expected to\n");
    for row in &headline.does_not_win {
        let _ = writeln!(out, "{}", over(row));
    }
    out.push_str("TCP by default (batch) over each\n");
    for row in &headline.tcp {
        let _ = writeln!(out, "{}", over(row));
    }
    out.push_str("calls a packet, times fewer by default than by each; the goals are of 32 KiB\n");
    for row in &headline.calls_fewer {
        let _ = writeln!(out, "  {:<59} {}", row.name(), ratio_text(row.ratio));
    }
    let _ = writeln!(
        out,
        "kicks a packet of steady datagrams, defer over event-idx: {}",
        ratio_text(headline.defer_kicks)
    );
    if let Some(recovery) = &figures.recovery {
        for (signal, ended) in [
            ("SIGTERM", &recovery.sigterm),
            ("SIGKILL", &recovery.sigkill),
        ] {
            let ms = ended.median();
            let _ = writeln!(
                out,
                "packets again after {signal}: {} ms; {} datagrams asked, {} unanswered, {} twice, {} with other bytes",
                ms.map_or("-".into(), |ms| format!("{ms:.0}")),
                ended.asked,
                ended.unanswered,
                ended.duplicate,
                ended.corrupt
            );
        }
    }
    out.push_str(&closing(&headline.goals, &[]));
}

fn line(row: &Row) -> String {
    let n = |value: Option<f64>| value.map_or("-".into(), |n| format!("{n:.4}"));
    let whole = |value: Option<f64>| value.map_or("-".into(), |n| format!("{n:.0}"));
    let ns = whole(row.back_cpu_ns_per_packet);
    format!(
        "{:<22} {:<10} {:<9} {:>8.0} {:<14} x {:<20} p50 {:>6} p99 {:>7} us  \
         tx kicks {} calls {}  rx kicks {} calls {}  interrupts {}  back {ns} ns",
        row.load,
        if row.offload { "offload" } else { "no offload" },
        row.policy.name,
        row.value.median,
        row.unit,
        ratio(row),
        whole(row.p50_us),
        whole(row.p99_us),
        n(row.tx.kicks),
        n(row.tx.calls),
        n(row.rx.kicks),
        n(row.rx.calls),
        n(row.interrupts_per_packet),
    )
}

fn ratio(row: &Row) -> String {
    match row.vs_each {
        Some(r) if r.low.is_nan() => format!("{:.2}", r.estimate),
        Some(r) => format!("{:.2} ({:.2} .. {:.2})", r.estimate, r.low, r.high),
        None => "-".into(),
    }
}
