//! What the order of packets changes, and what not.
use super::cachegrind::CacheCounts;
use crate::not_measured::NotMeasured;
use crate::table::{Table, closing, spread};
use hopscope_compare::output::Summary;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Round {
    /// Processor time of the worker for each packet, nothing measured.
    pub(super) bare_ns: f64,
    /// Median of the lookup for each packet of a batch.
    pub(super) lookup_ns: f64,
    /// Median of the pass of a batch through all modules: what each of its packets waits.
    pub(super) batch_ns: f64,
}

/// One order of the packets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    pub(super) slf: &'static str,
    pub(super) rounds: Vec<Round>,
    pub(super) counts: Option<CacheCounts>,
}

impl Order {
    pub(super) fn new(slf: &'static str) -> Order {
        Order {
            slf,
            rounds: Vec::new(),
            counts: None,
        }
    }

    fn spread(&self, of: fn(&Round) -> f64) -> Option<Spread> {
        Spread::of(&self.rounds.iter().map(of).collect::<Vec<_>>())
    }

    fn row(&self) -> Value {
        json!({
            "slf": self.slf.parse::<u32>().ok(),
            "bare_ns": self.spread(|r| r.bare_ns),
            "lookup_ns": self.spread(|r| r.lookup_ns),
            "batch_ns": self.spread(|r| r.batch_ns),
            "simulated": self.counts,
        })
    }
}

pub(super) struct Figures {
    pub(super) orders: Vec<Order>,
    pub(super) not_measured: Vec<NotMeasured>,
}

impl Figures {
    /// The last order's over the first one's.
    fn last_over_first(&self, of: impl Fn(&Order) -> Option<f64>) -> Option<f64> {
        Some(of(self.orders.last()?)? / of(self.orders.first()?)?)
    }

    pub(super) fn summary(self) -> Summary {
        let median =
            |of: fn(&Round) -> f64| self.last_over_first(|order| Some(order.spread(of)?.median));
        let counted = |of: fn(&CacheCounts) -> f64| {
            self.last_over_first(|order| order.counts.as_ref().map(of))
        };
        let headline = [
            ("lookup_ratio", median(|r| r.lookup_ns)),
            ("batch_ratio", median(|r| r.batch_ns)),
            ("bare_ratio", median(|r| r.bare_ns)),
            ("simulated_load_misses_ratio", counted(|c| c.load_misses)),
            ("simulated_loads_ratio", counted(|c| c.loads)),
            ("simulated_instructions_ratio", counted(|c| c.instructions)),
        ];
        let rows: Vec<Value> = self.orders.iter().map(Order::row).collect();
        let mut fields = json!({"orders": rows, "not_measured": self.not_measured});
        for (name, value) in headline {
            fields[name] = json!(value);
        }
        Summary {
            unit: json!({"*_ratio": "SLF 64 over SLF 1", "orders": "ns; simulated: a packet"}),
            fields,
            table: self.table(&headline),
            complete: headline.iter().all(|(_, value)| value.is_some()),
        }
    }

    fn table(&self, headline: &[(&str, Option<f64>)]) -> String {
        let mut out = String::from(
            "five-tuple filter, 3,000 rules, 1,024 flows; medians of rounds (10th .. 90th percentile)\n\n",
        );
        let head = [
            "SLF",
            "lookup ns a packet",
            "batch of 32, ns",
            "bare ns a packet",
            "instructions",
            "loads",
            "misses",
        ];
        let mut rows = Table::new(0, head);
        for order in &self.orders {
            let text = |of: fn(&Round) -> f64| {
                let spread_of = order.spread(of);
                spread_of.map_or("-".into(), |s| spread(s, 1.0, 1))
            };
            let counts = order
                .counts
                .map(|c| [c.instructions, c.loads, c.load_misses]);
            let [instructions, loads, misses] = counts.map_or([const { String::new() }; 3], |c| {
                [
                    format!("{:.1}", c[0]),
                    format!("{:.1}", c[1]),
                    format!("{:.2}", c[2]),
                ]
            });
            rows.row([
                order.slf.to_string(),
                text(|r| r.lookup_ns),
                text(|r| r.batch_ns),
                text(|r| r.bare_ns),
                instructions,
                loads,
                misses,
            ]);
        }
        let _ = write!(out, "{rows}");
        out.push_str(
            "\ninstructions, loads and misses: the lookup of a packet in simulated caches\n\n",
        );
        for (name, value) in headline {
            let value = value.map_or("not measured".into(), |v| format!("{v:.3}"));
            let _ = writeln!(out, "{name} (SLF 64 over SLF 1): {value}");
        }
        out + &closing(&[], &self.not_measured)
    }
}
