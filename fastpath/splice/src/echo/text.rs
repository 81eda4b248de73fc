//! What an echo server says of itself at its end.
use super::EchoReport;
use std::fmt;

impl fmt::Display for EchoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        writeln!(
            f,
            "accepted {}, ended {}, reset {}, failed {}, over the limit {}, open at the end {}, not accepted \
         {}; {} B by user space",
            c.accepted,
            c.ended,
            c.reset,
            c.failed,
            c.over_limit,
            c.open_at_stop,
            c.accept_failed,
            c.user_bytes
        )?;
        if let Some(k) = &self.kernel {
            writeln!(
                f,
                "kernel: {} connections; {} B out of their own sockets ({}), {} B into local clients' ({}); \
             left to user space: {} B",
                k.enrolled,
                k.egress_bytes,
                k.egress_connections,
                k.ingress_bytes,
                k.ingress_connections,
                k.passed_bytes
            )?;
            let why = [
                ("the client does not read", k.client_is_slow),
                ("the peer disconnected", k.redirect_failed),
                ("no room for a record", k.no_room),
                ("the socket was not taken", k.not_enrolled),
                ("without a record", k.no_record),
                ("bytes dropped before a reset", k.dropped_bytes),
                ("a notice was late", k.events_late),
            ];
            for (why, count) in why.into_iter().filter(|(_, count)| *count > 0) {
                writeln!(f, "  {why}: {count}")?;
            }
        }
        Ok(())
    }
}
