//! `bench case-tcp-send`: how the time of sending over TCP is shared by the layers that the data go
//! through, from the system call to the driver (NetSlice, figure 7).
use super::Bench;
use super::traffic::Route;
use crate::Settings;
use crate::error::{Error, Result};
use crate::not_measured::NotMeasured;
use crate::table::{closing, spread};
use hopscope_compare::host::Host;
use hopscope_compare::output::{Output, Summary};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Layers in a packet's order, and the points between which they lie.
const LAYERS: [(&str, &str, &str); 5] = [
    ("call", "tx_syscall", "tx_transport"),
    ("tcp", "tx_transport", "tx_ip_out"),
    ("ip", "tx_ip_out", "tx_dev_queue"),
    ("queue", "tx_dev_queue", "tx_driver"),
    ("driver", "tx_driver", "tx_done"),
];
const MESSAGES: [u32; 4] = [64, 512, 1448, 16 * 1024];
/// One that fits into a packet, and one that does not.
const MESSAGES_LEAST: [u32; 2] = [64, 16 * 1024];

/// A device, and what stands in front of it.
struct Way {
    name: &'static str,
    lay: fn() -> Result<Route>,
}

const WAYS: [Way; 4] = [
    Way {
        name: "veth",
        lay: Route::cable,
    },
    Way {
        name: "veth, tbf",
        lay: || Route::cable()?.with_tbf(),
    },
    Way {
        name: "loopback",
        lay: Route::loopback,
    },
    Way {
        name: "loopback, tbf",
        lay: || Route::loopback()?.with_tbf(),
    },
];

/// Of one message size on one way: medians of the packets of each run, corrected, in ns.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    way: &'static str,
    message_bytes: u32,
    layers: BTreeMap<&'static str, Spread>,
    /// From the system call to the driver's return.
    whole: Spread,
    packets: f64,
    records_lost: f64,
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let mut bench = Bench::new(settings, &mut output)?;
    if settings.quick {
        // Hooks are attached sixteen times a round, and no interval is asked for.
        bench.rounds = settings.pick(1, 3, 3);
    }
    let (mut rows, mut not_measured) = (Vec::new(), Vec::new());
    for way in &WAYS {
        match measure(&mut bench, way) {
            Ok(of_way) => rows.extend(of_way),
            Err(error) => not_measured.push(NotMeasured::new(way.name, error)),
        }
    }
    drop(bench);
    let complete = not_measured.is_empty();
    let table = table(&rows, &not_measured);
    let layers = LAYERS.map(|(name, ..)| name);
    let summary = Summary {
        unit: json!({"rows": "ns"}),
        fields: json!({"layers": layers, "rows": rows, "not_measured": not_measured}),
        table,
        complete,
    };
    Ok(output.summary(&host, summary)?)
}

/// Sizes in turn within each round.
fn measure(bench: &mut Bench<'_, '_>, way: &Way) -> Result<Vec<Row>> {
    let route = (way.lay)()?;
    let lines = LAYERS.map(|(name, from, to)| format!("{name} = {from} .. {to}\n"));
    let regions = bench.slicer.regions("send", &lines.concat())?;
    let least = bench.settings.least;
    let messages = if least {
        &MESSAGES_LEAST[..]
    } else {
        &MESSAGES
    };
    let mut seen: Vec<Seen> = messages.iter().map(|_| Seen::default()).collect();
    for round in 0..bench.rounds {
        bench.say(&format!("sending over {}", way.name), round);
        for (&size, seen) in messages.iter().zip(&mut seen) {
            let mut connection = route.connect(&bench.programs, size)?;
            // Towards the answering end, and with data: an acknowledgement alone is not sent by a call.
            let filter = format!("tcp dst port {} and greater 61", connection.port());
            let hooks = bench.slicer.attach(&regions, &[], &filter)?;
            connection.run(bench.milliseconds)?;
            let closing = hooks.detach()?;
            seen.packets += closing.packets()?;
            seen.lost += closing.lost()?;
            let whole = closing.number("whole/p50_ns")?;
            seen.whole.push(whole);
            let mut sample = json!({
                "what": "send", "way": way.name, "message_bytes": size, "round": round, "whole_p50_ns": whole,
            });
            for (name, ..) in LAYERS {
                let p50 = closing.p50_ns(name);
                sample[format!("{name}_p50_ns")] = json!(p50);
                seen.layers.entry(name).or_default().extend(p50);
            }
            bench.sample(sample)?;
        }
    }
    let rows = messages.iter().zip(seen);
    rows.map(|(&size, seen)| seen.row(way.name, size)).collect()
}

#[derive(Default)]
struct Seen {
    layers: BTreeMap<&'static str, Vec<f64>>,
    whole: Vec<f64>,
    packets: f64,
    lost: f64,
}

impl Seen {
    fn row(self, way: &'static str, message_bytes: u32) -> Result<Row> {
        let nothing = || Error::Nothing {
            what: "a layer of sending",
        };
        let layers = self.layers.into_iter().map(|(name, values)| {
            let spread = Spread::of(&values).ok_or_else(nothing)?;
            Ok((name, spread))
        });
        Ok(Row {
            way,
            message_bytes,
            layers: layers.collect::<Result<_>>()?,
            whole: Spread::of(&self.whole).ok_or_else(nothing)?,
            packets: self.packets,
            records_lost: self.lost,
        })
    }
}

fn table(rows: &[Row], not_measured: &[NotMeasured]) -> String {
    let mut out = String::from(
        "sending over TCP, from the system call to the driver's return; corrected, ns: median of the \
         runs' medians\n(10th .. 90th percentile of runs)\n",
    );
    let mut way = "";
    for row in rows {
        if row.way != way {
            way = row.way;
            let _ = write!(out, "\n{way:<14}");
            for (name, ..) in LAYERS {
                let _ = write!(out, " {name:>20}");
            }
            let _ = writeln!(out, " {:>20} {:>9}", "whole", "packets");
        }
        let _ = write!(out, "{:>12} B", row.message_bytes);
        let layers = LAYERS.iter().map(|(name, ..)| row.layers.get(name));
        for layer in layers.chain([Some(&row.whole)]) {
            let cell = layer.map_or("-".into(), |s| spread(*s, 1.0, 0));
            let _ = write!(out, " {cell:>20}");
        }
        let _ = writeln!(out, " {:>9.0}", row.packets);
    }
    out + &closing(&[], not_measured)
}
