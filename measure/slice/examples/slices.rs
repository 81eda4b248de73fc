//! Slices of every packet while a command runs: `slices BACKEND|auto READY_FILE COMMAND…`. A JSON
//! object a packet, and one at the end, as `hopscope slice --json` has them.
use hopscope_event::slice::SliceRecord;
use hopscope_slice::kinds::cgroup2;
use hopscope_slice::load::{Backend, Drained, Entry, LoadError, Options, Slicer};
use hopscope_slice::regions;
use serde_json::{Value, json};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// How often the ring is emptied; the programs wake nobody.
const DRAIN: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [backend, ready, program, arguments @ ..] = words.as_slice() else {
        eprintln!("slices BACKEND|auto READY_FILE COMMAND…");
        return ExitCode::from(2);
    };
    let run = || -> Result<(), LoadError> {
        let both = regions::preset("both").unwrap_or_default();
        let mut options = Options::new(regions::points(&both));
        options.backend = backend.parse::<Backend>().ok();
        options.cgroup = cgroup2().unwrap_or(options.cgroup);
        let mut slicer = Slicer::load(&options)?;
        let mut drained = slicer.drain()?;
        slicer.start()?;
        let os = |what| move |source| LoadError::Os { what, source };
        std::fs::write(ready, "").map_err(os("the ready file"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .spawn()
            .map_err(os("the command"))?;
        while child.try_wait().map_err(os("waiting"))?.is_none() {
            print(&mut drained)?;
            std::thread::sleep(DRAIN);
        }
        slicer.detach();
        print(&mut drained)?;
        let counters = slicer.counters()?;
        let last = json!({
            "type": "slice_summary",
            "backend": slicer.backend().name(),
            "summary": {
                "in_flight": counters.in_flight(),
                "counters": counters,
                "hooks": slicer.hooks(),
            },
        });
        println!("{last}");
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("slices: {error}");
            ExitCode::from(2)
        }
    }
}

fn print(drained: &mut Drained) -> Result<(), LoadError> {
    for entry in drained.take()? {
        if let Entry::Record(record) = entry {
            println!("{}", line(&record));
        }
    }
    Ok(())
}

fn line(record: &SliceRecord) -> Value {
    let taken: Vec<_> = record.taken().collect();
    let pieces = taken.windows(2).map(|pair| {
        let [(from, begin), (to, end)] = pair else {
            return Value::Null;
        };
        let raw_ns = i64::from(end.delta()) - i64::from(begin.delta());
        json!({"from": from.name(), "to": to.name(), "raw_ns": raw_ns})
    });
    json!({
        "type": "slice",
        "monotonic_ns": record.t0_ns,
        "family": record.family,
        "protocol": record.protocol,
        "source_port": record.source_port,
        "destination_port": record.destination_port,
        "length": record.payload,
        "tx": {"tid": record.tx_tid},
        "rx": {"tid": record.rx_tid},
        "call_returned": record.rx_returned,
        "flags": record.flags.to_string(),
        "slices": pieces.collect::<Vec<_>>(),
        "whole": {"raw_ns": record.total()},
    })
}
