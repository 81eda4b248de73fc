//! The summary of `bench splice`: headline figures against their goals, and what stands behind them.
use super::one_way::{self, Row as OneWay};
use super::pairs::{self, Row as Pairs};
use super::programs::{Row as Program, headline};
use super::released::Row as Released;
use super::request_rates::{Load, Row as Standing, p50_ratio, rate_ratio};
use super::servers::ServerKind;
use super::sockets::{self, Row as Sockets};
use crate::goal::Goal;
use crate::not_measured::NotMeasured;
use crate::table::{closing, lines, spread};
use hopscope_compare::output::Summary;
use hopscope_compare::stats::Spread;
use serde_json::json;
use std::fmt::Write;

/// Of the published table: means in us, 1,000 threads (the first 800 and 900 of them).
const PUBLISHED: [(&str, f64, f64); 3] = [
    ("a kernel module", 22589.0, 48726.0),
    ("user space", 41863.0, 67954.0),
    ("in the kernel, BPF", 21360.0, 36346.0),
];

#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) headline: Headline,
    pub(super) standing: Vec<Standing>,
    pub(super) released: Vec<Released>,
    pub(super) many: Vec<Released>,
    pub(super) queues: Vec<Released>,
    pub(super) programs: Vec<Program>,
    pub(super) sockets: Vec<Sockets>,
    pub(super) one_way: Vec<OneWay>,
    pub(super) pairs: Vec<Pairs>,
    pub(super) failures_of_servers: f64,
    pub(super) not_measured: Vec<NotMeasured>,
}

#[derive(Debug, Default)]
pub(super) struct Headline {
    splice_vs_epoll_64conn: Option<f64>,
    splice_p50_vs_epoll_1conn: Option<f64>,
    guard_vs_unguarded: Option<f64>,
    kernel_echo_vs_epoll_64conn: Option<f64>,
    kernel_egress_vs_epoll_64conn: Option<f64>,
}

impl Headline {
    pub(super) fn of(
        all: &std::collections::BTreeMap<(Load, ServerKind), super::request_rates::Found>,
    ) -> Headline {
        let load = |connections| Load {
            connections,
            size: 64,
        };
        let rate = |of, to| rate_ratio(all, load(64), of, to);
        Headline {
            splice_vs_epoll_64conn: rate(ServerKind::Splice, ServerKind::User),
            splice_p50_vs_epoll_1conn: p50_ratio(
                all,
                load(1),
                ServerKind::Splice,
                ServerKind::User,
            ),
            guard_vs_unguarded: rate(ServerKind::Splice, ServerKind::SpliceUnguarded),
            kernel_echo_vs_epoll_64conn: rate(ServerKind::Kernel, ServerKind::User),
            kernel_egress_vs_epoll_64conn: rate(ServerKind::KernelEgress, ServerKind::User),
        }
    }
}

impl Figures {
    fn failures(&self) -> f64 {
        let standing: f64 = self.standing.iter().map(|row| row.failures).sum();
        let released = self.released.iter().chain(&self.many);
        let programs: f64 = self.programs.iter().map(|row| row.failures).sum();
        let sockets: f64 = self.sockets.iter().map(|row| row.failures).sum();
        let pairs: f64 = self.pairs.iter().map(|row| row.failures).sum();
        programs
            + sockets
            + pairs
            + standing
            + released.map(|row| row.failures).sum::<f64>()
            + self.failures_of_servers
    }

    /// Of servers with equal queues; what a short one does is another table.
    fn listen_overflows(&self) -> f64 {
        let rows = self.released.iter().chain(&self.many);
        rows.map(|row| row.listen_overflows).sum()
    }

    fn goals(&self) -> Vec<Goal> {
        let h = &self.headline;
        vec![
            Goal::at_least("splice_vs_unix_64", self.vs_unix(), 0.95),
            Goal::at_least("splice_vs_epoll_64conn", h.splice_vs_epoll_64conn, 2.0),
            Goal::at_most(
                "splice_p50_vs_epoll_1conn",
                h.splice_p50_vs_epoll_1conn,
                0.65,
            ),
            Goal::at_least("pair_vs_apart", self.pair(|row| &row.paired_vs_apart), 4.0),
            Goal::at_least(
                "apart_p50_vs_pair",
                self.pair(|row| &row.apart_p50_vs_paired),
                4.0,
            ),
            Goal::at_least("guard_vs_unguarded", h.guard_vs_unguarded, 0.95),
            Goal::at_least("redis_ratio", self.ratio("redis"), 1.3),
            Goal::at_most("failures", Some(self.failures()), 0.0),
        ]
    }

    /// Headline figures beside those with a goal.
    fn without_a_goal(&self) -> [(&'static str, Option<f64>); 5] {
        let h = &self.headline;
        let egress = h.kernel_egress_vs_epoll_64conn;
        [
            ("kernel_echo_vs_epoll_64conn", h.kernel_echo_vs_epoll_64conn),
            ("kernel_egress_vs_epoll_64conn", egress),
            ("listen_overflows", Some(self.listen_overflows())),
            ("haproxy_ratio", self.ratio("haproxy")),
            ("asyncio_ratio", self.ratio("asyncio")),
        ]
    }

    fn vs_unix(&self) -> Option<f64> {
        sockets::headline(&self.sockets).map(|row| row.redirected_vs_unix.median)
    }

    fn pair(&self, of: impl Fn(&Pairs) -> &Spread) -> Option<f64> {
        pairs::headline(&self.pairs).map(|row| of(row).median)
    }

    fn ratio(&self, program: &str) -> Option<f64> {
        headline(&self.programs, program).map(|ratio| ratio.median)
    }

    pub(super) fn summary(self) -> Summary {
        let goals = self.goals();
        let h = &self.headline;
        // Programs of others may be missing, and ends that take turns need not be slower apart.
        let elsewhere = ["redis_ratio", "pair_vs_apart", "apart_p50_vs_pair"];
        let mut own = goals.iter().filter(|goal| !elsewhere.contains(&goal.name));
        let measured = own.all(|goal| goal.measured.is_some());
        let complete = measured && h.kernel_echo_vs_epoll_64conn.is_some();
        let published = PUBLISHED.map(|(server, here, across)| {
            json!({"server": server, "here_mean_us": here, "across_mean_us": across})
        });
        let mut fields = json!({
            "programs": self.programs,
            "sockets": self.sockets,
            "pairs": self.pairs,
            "one_way": self.one_way,
            "published": published,
            "standing": self.standing,
            "released": self.released,
            "many": self.many,
            "accept_queues": self.queues,
            "goals": goals,
            "not_measured": self.not_measured,
        });
        for goal in &goals {
            fields[goal.name] = json!(goal.measured);
        }
        for (name, value) in self.without_a_goal() {
            fields[name] = json!(value);
        }
        for program in ["redis", "haproxy", "asyncio"] {
            fields[format!("{program}_ratio_spread")] = json!(headline(&self.programs, program));
        }
        Summary {
            unit: json!({
                "_us": "us", "_gb_per_s": "10^9 B/s", "_per_s": "1/s", "requests_per_s": "1/s", "mbit_per_s": "10^6 bit/s each way",
                "_vs_": "ratio", "_ratio": "ratio", "size": "B",
            }),
            fields,
            table: self.table(&goals),
            complete,
        }
    }

    fn table(&self, goals: &[Goal]) -> String {
        let mut out = String::from(
            "requests a second over standing connections, each with one message under way; medians of \
             rounds\n(x: median of the ratios to `user` in the same round, 10th to 90th percentile)\n\n",
        );
        lines(&mut out, &self.standing, standing);
        out.push_str("\nclients released together: connect, 13 bytes, echo\n");
        let rows = self.released.iter().chain(&self.many).chain(&self.queues);
        lines(&mut out, rows, released);
        out.push_str(
            "programs as they are, plain and joined: requests a second, medians of rounds\n\
             (x: median of the ratios in the same round, 10th to 90th percentile)\n",
        );
        for row in &self.programs {
            let x = spread(row.joined_vs_plain, 1.0, 2);
            let _ = writeln!(
                out,
                "{:<8} {:>4} clients  plain {:>9.0}/s  joined {:>9.0}/s  x {x}  {} messages \
                 took the short cut, {} TCP",
                row.program,
                row.connections,
                row.plain_requests_per_s.median,
                row.joined_requests_per_s.median,
                row.direct_messages,
                row.tcp_messages
            );
        }
        out.push_str(
            "the same ends in C, a processor each: requests a second, medians of rounds\n",
        );
        lines(&mut out, &self.sockets, sockets::line);
        out.push_str("redirected connections with and without --pair\n");
        lines(&mut out, &self.pairs, pairs::line);
        out.push_str(
            "bytes that go one way, a processor each end (x: of plain TCP in the same round)\n",
        );
        lines(&mut out, &self.one_way, one_way::line);
        out.push_str("published, 1,000 threads, mean, first 800 (here) and 900 (across):\n");
        for (server, here, across) in PUBLISHED {
            let _ = writeln!(out, "  {server:<20} {here:>8.0} us  {across:>8.0} us");
        }
        out.push('\n');
        for (name, value) in self.without_a_goal() {
            let value = value.map_or("-".into(), |value| format!("{value:.2}"));
            let _ = writeln!(out, "{name:<30} {value:>8}");
        }
        out + &closing(goals, &self.not_measured)
    }
}

pub(super) fn standing(row: &Standing) -> String {
    let ratio = row
        .rate_vs_user
        .map_or("-".to_owned(), |x| spread(x, 1.0, 2));
    format!(
        "{:<7} {:>6} B x {:<4} {:<17} {:>9.0}/s {:>8.0} Mbit/s  p50 {:>9.1} us  p99 {:>9.1} us  x {ratio}",
        row.path,
        row.size,
        row.connections,
        row.server.name(),
        row.requests_per_s.median,
        row.mbit_per_s,
        row.p50_us,
        row.p99_us,
    )
}

pub(super) fn released(row: &Released) -> String {
    let processors = if row.one_processor { ", one CPU" } else { "" };
    format!(
        "{:<7} {:>5} clients, queue {:<5}{processors:<9} {:<17} mean {:>9.0}  p50 {:>9.0}  p99 {:>9.0}  max {:>9.0} us  \
         failed {:.0}, overflows {:.0}, time-outs {:.0}",
        row.path,
        row.clients,
        row.backlog,
        row.server.name(),
        row.mean_us,
        row.p50_us,
        row.p99_us,
        row.max_us,
        row.failures,
        row.listen_overflows,
        row.timeouts
    )
}
