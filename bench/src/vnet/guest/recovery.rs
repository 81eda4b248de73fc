//! How long no packets come when a back end ends and the next one begins: with SIGTERM, and with SIGKILL.
use super::Place;
use super::console::Talk;
use super::device::{BATCH, Device, number_of};
use crate::error::{Error, Result};
use crate::said::last_line;
use crate::vnet::Bench;
use crate::vnet::process::number;
use hopscope_compare::stats::Spread;
use nix::sys::signal::Signal;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Datagrams there and back before a back end is ended.
const BEFORE: f64 = 100.0;
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// QEMU tries again each second: against hanging only.
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Serialize)]
pub(super) struct Recovery {
    pub(super) sigterm: Ended,
    pub(super) sigkill: Ended,
}

/// Back ends that ended by one signal, under datagrams with numbers that are sent back.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Ended {
    /// From the signal until the next back end, begun at once, has carried packets both ways.
    pub(super) ms: Vec<f64>,
    /// Datagrams of all that time: those that never came back, and those that did twice.
    pub(super) asked: f64,
    pub(super) unanswered: f64,
    pub(super) duplicate: f64,
    pub(super) corrupt: f64,
}

impl Ended {
    pub(super) fn median(&self) -> Option<f64> {
        Spread::of(&self.ms).map(|spread| spread.median)
    }
}

pub(super) fn measure(
    bench: &mut Bench<'_, '_>,
    place: &mut Place,
    talk: &mut Talk,
    times: usize,
) -> Result<Recovery> {
    let mut by = |signal| ended(bench, place, talk, times, signal);
    Ok(Recovery {
        sigterm: by(Signal::SIGTERM)?,
        sigkill: by(Signal::SIGKILL)?,
    })
}

fn ended(
    bench: &mut Bench<'_, '_>,
    place: &mut Place,
    talk: &mut Talk,
    times: usize,
    signal: Signal,
) -> Result<Ended> {
    let n = number_of(BATCH).unwrap_or_default();
    talk.ask(&format!("traffic {n} {}", place.echo.port))?;
    let mut ms = Vec::new();
    for round in 0..times {
        bench.say(signal.as_str(), round);
        let before = packets(&place.devices[n])?;
        until(&place.devices[n], before + BEFORE)?;
        let began = Instant::now();
        let last = place.devices.remove(n);
        // Its place is free when it is gone.
        last.end.stop(signal)?;
        let next = Device::start(bench, &place.namespace, n, place.offload)?;
        place.devices.insert(n, next);
        until(&place.devices[n], 1.0)?;
        ms.push(began.elapsed().as_secs_f64() * 1e3);
        bench.sample(json!({
            "what": "recovery", "round": round, "signal": signal.as_str(), "ms": ms[round],
        }))?;
    }
    let said: Value = last_line("hopscope load", &talk.ask("quiet")?.join("\n"))?;
    let asked = number(&said, "asked")?;
    Ok(Ended {
        ms,
        asked,
        unanswered: asked - number(&said, "done")?,
        duplicate: number(&said, "duplicate")?,
        corrupt: number(&said, "corrupt")?,
    })
}

/// Of the direction that had fewer.
fn packets(device: &Device) -> Result<f64> {
    let counts = device.counts()?;
    let of = |queue: &str| number(&counts, &format!("pairs.0.{queue}.packets"));
    Ok(of("rx")?.min(of("tx")?))
}

fn until(device: &Device, enough: f64) -> Result<()> {
    let began = Instant::now();
    while packets(device)? < enough {
        if began.elapsed() > SILENCE {
            let what = "a back end that began anew";
            return Err(Error::Nothing { what });
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}
