//! The summary of `bench splice-guest`.
use super::shell_output::Module;
use super::{ServerKind, load};
use crate::not_measured::NotMeasured;
use crate::splice::released::Row as Released;
use crate::splice::report::{released, standing};
use crate::splice::request_rates::{All, Row as Standing, p50_ratio, rate_ratio};
use crate::table::{closing, lines};
use hopscope_compare::output::Summary;
use serde_json::json;
use std::fmt::Write;

const EMULATED: &str = "an emulated machine (qemu without KVM) with one processor: its times are not those of \
     hardware, and what a server would gain on a second processor does not show. Ratios of servers in the \
     same round are all that compares";

#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) guest_kernel: Option<String>,
    pub(super) headline: Headline,
    pub(super) standing: Vec<Standing>,
    pub(super) released: Vec<Released>,
    pub(super) module: Option<Module>,
    pub(super) not_measured: Vec<NotMeasured>,
}

/// Medians of the ratios within a round: 64 B, requests a second at 64 connections, p50 at one.
#[derive(Debug, Default)]
pub(super) struct Headline([(&'static str, Option<f64>); 5]);

impl Headline {
    pub(super) fn of(all: &All) -> Headline {
        let rate = |of, to| rate_ratio(all, load(64), of, to);
        let p50 = |of, to| p50_ratio(all, load(1), of, to);
        Headline([
            (
                "module_vs_epoll_64conn",
                rate(ServerKind::Module, ServerKind::User),
            ),
            (
                "module_p50_vs_epoll_1conn",
                p50(ServerKind::Module, ServerKind::User),
            ),
            (
                "module_vs_kernel_echo_64conn",
                rate(ServerKind::Module, ServerKind::Kernel),
            ),
            (
                "splice_vs_module_64conn",
                rate(ServerKind::Splice, ServerKind::Module),
            ),
            (
                "splice_p50_vs_module_1conn",
                p50(ServerKind::Splice, ServerKind::Module),
            ),
        ])
    }
}

impl Figures {
    fn failures(&self) -> f64 {
        let standing: f64 = self.standing.iter().map(|row| row.failures).sum();
        let released: f64 = self.released.iter().map(|row| row.failures).sum();
        let left = self.module.map_or(0.0, |module| module.left as f64);
        standing + released + left
    }

    fn listen_overflows(&self) -> f64 {
        self.released.iter().map(|row| row.listen_overflows).sum()
    }

    pub(super) fn summary(self) -> Summary {
        let Headline(headline) = &self.headline;
        let measured = headline.iter().all(|(_, value)| value.is_some());
        let was_there = self.guest_kernel.is_some();
        let counted = |count: f64| was_there.then_some(count);
        let mut fields = json!({
            "failures": counted(self.failures()),
            "listen_overflows": counted(self.listen_overflows()),
            "emulated": true,
            "note": EMULATED,
            "guest_kernel": self.guest_kernel,
            "standing": self.standing,
            "released": self.released,
            "module": self.module,
            "not_measured": self.not_measured,
        });
        for (name, value) in headline {
            fields[*name] = json!(value);
        }
        Summary {
            unit: json!({
                "_us": "us", "requests_per_s": "1/s", "mbit_per_s": "10^6 bit/s each way",
                "_vs_": "ratio", "size": "B",
            }),
            fields,
            table: self.table(),
            complete: measured && self.not_measured.is_empty(),
        }
    }

    fn table(&self) -> String {
        let mut out = String::new();
        if let Some(kernel) = &self.guest_kernel {
            let _ = writeln!(out, "Linux {kernel} on {EMULATED}.\n");
        }
        lines(&mut out, &self.standing, standing);
        out.push('\n');
        lines(&mut out, &self.released, released);
        out.push('\n');
        let Headline(headline) = &self.headline;
        for (name, value) in headline.iter().filter(|(_, value)| value.is_some()) {
            let _ = writeln!(out, "{name:<30} {:>8.2}", value.unwrap_or_default());
        }
        if let Some(module) = self.module {
            let Module {
                connections, left, ..
            } = module;
            let _ = writeln!(
                out,
                "failures {:.0}, listen overflows {:.0}; the module had {connections} connections, {left} left at \
                 its end",
                self.failures(),
                self.listen_overflows()
            );
        }
        out + &closing(&[], &self.not_measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_guest_nothing_is_claimed() {
        let figures = Figures {
            not_measured: vec![NotMeasured::new("the guest", "no kernel")],
            ..Figures::default()
        };
        let summary = figures.summary();
        assert!(!summary.complete);
        assert_eq!(summary.fields["failures"], json!(null));
        assert!(summary.table.contains("no kernel"), "{}", summary.table);
    }
}
