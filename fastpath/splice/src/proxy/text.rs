//! What a proxy says of itself: engines chosen, and counts at its end.
use super::{EngineKind, EngineVerdict, ProxyReport};
use std::fmt;

fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s {
        rate if rate >= 1e6 => format!("{:.1} MB/s", rate / 1e6),
        rate => format!("{:.1} kB/s", rate / 1e3),
    }
}

impl fmt::Display for EngineVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let choice = self;
        let engine = match choice.engine {
            EngineKind::User => "user",
            EngineKind::Kernel => "kernel",
        };
        write!(
            f,
            "engine {engine} for new connections: {}; kernel {} of {} connections (median), user {} of {}: x{:.2}, {:.1} \
         standard deviations, in {} ms",
            choice.why,
            rate(choice.kernel.bytes_per_s),
            choice.kernel.connections,
            rate(choice.user.bytes_per_s),
            choice.user.connections,
            choice.ratio,
            choice.sure,
            choice.window_ms
        )
    }
}

impl fmt::Display for ProxyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        writeln!(
            f,
            "accepted {} ({} kernel, {} user): ended {}, reset by the client {}, by the upstream {}, failed {}, over the \
         limit {}, open at the end {}",
            c.accepted,
            c.kernel_connections,
            c.user_connections,
            c.ended,
            c.reset_by_client,
            c.reset_by_upstream,
            c.failed,
            c.over_limit,
            c.open_at_stop
        )?;
        writeln!(
            f,
            "copied: {} B up, {} B down",
            c.user_bytes_up, c.user_bytes_down
        )?;
        if let Some(k) = &self.kernel {
            writeln!(
                f,
                "by the kernel: {} B up, {} B down",
                k.bytes_up, k.bytes_down
            )?;
            let counted = [
                ("to user space: the reader is slower", k.reader_is_slow),
                ("to user space: the peer disconnected", k.redirect_failed),
                ("back from user space", k.back_to_kernel),
                ("a notice was lost", k.events_lost),
                ("without a record", k.no_record),
            ];
            lines(f, &counted)?;
        }
        if let Some(why) = &self.kernel_unavailable {
            writeln!(f, "no kernel engine: {why}")?;
        }
        let counted = [
            ("upstream refused", c.connect_refused),
            ("upstream failed", c.connect_failed),
            ("upstream did not answer", c.connect_timed_out),
            ("idle", c.idle_timed_out),
            (
                "the client reset before the upstream was there",
                c.gone_before_connect,
            ),
            ("accept failed", c.accept_failed),
            (
                "copied at least one way: an end had come before",
                c.not_joined_ended,
            ),
            (
                "copied: as many as may be were in the kernel",
                c.not_joined_full,
            ),
            (
                "copied: the kernel did not take a socket",
                c.not_joined_refused,
            ),
        ];
        lines(f, &counted)
    }
}

fn lines(f: &mut fmt::Formatter<'_>, counted: &[(&str, u64)]) -> fmt::Result {
    for (what, count) in counted.iter().filter(|(_, count)| *count > 0) {
        writeln!(f, "  {what}: {count}")?;
    }
    Ok(())
}
