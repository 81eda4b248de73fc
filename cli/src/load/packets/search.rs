//! `--find-max`: trials at rates that a binary search chooses.
use super::Session;
use super::args::Rate;
use crate::json::tagged;
use anyhow::bail;
use hopscope_load::packets::find_max::{Search, Verdict};
use hopscope_load::packets::lines::SummaryLine;
use hopscope_load::packets::plan::Pace;
use hopscope_load::packets::ports::Opened;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

/// Packets a second below which there is nothing to look for.
const LEAST: f64 = 10.0;

/// What came of one rate, beside what its run says.
#[derive(Serialize)]
struct Trial {
    trial: u32,
    rate: f64,
    verdict: Verdict,
    #[serde(flatten)]
    packets: SummaryLine,
}

pub(super) fn run(session: &Session<'_>, ports: &mut Opened) -> anyhow::Result<ExitCode> {
    let args = session.args;
    let Some(Rate::PerSecond(highest)) = args.rate else {
        bail!("--find-max needs a rate to begin with, which is not max: --rate 1M");
    };
    let threshold = args.loss / 100.0;
    let mut search = Search::new(LEAST.min(highest), highest, args.resolution / 100.0);
    let mut trial = 0u32;
    while let Some(rate) = search.rate() {
        trial += 1;
        let timing = session.timing(args.duration);
        let pace = Pace::Rate(rate);
        let outcome = session.run(pace, timing, trial as u8, ports, None, &mut |_, _| {})?;
        if session.stop.load(Ordering::Relaxed) {
            bail!("interrupted in trial {trial}: no rate was found");
        }
        let verdict = Verdict::of(&outcome, threshold);
        search.result(verdict);
        let lines = session.lines(ports);
        if args.json {
            let trial = Trial {
                trial,
                rate,
                verdict,
                packets: lines.summary(&outcome),
            };
            session.print(tagged("trial", &trial)?)?;
            continue;
        }
        let lost = 100.0 * outcome.total.lost as f64 / outcome.total.sent.max(1) as f64;
        let sent_s = outcome.total.sent as f64 / args.duration.as_secs_f64();
        session.print(format!(
            "trial {trial:>2}  asked {rate:.0}/s  sent {sent_s:.0}/s  lost {} ({lost:.4} %)  {}",
            outcome.total.lost,
            said(verdict)
        ))?;
    }
    tell(session, &search, trial)
}

fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "passed",
        Verdict::Lost => "failed: lost",
        Verdict::GeneratorTooSlow => "failed: the generator is too slow",
        Verdict::ReceiverTooSlow => "failed: the receiving port dropped frames",
    }
}

fn tell(session: &Session<'_>, search: &Search, trials: u32) -> anyhow::Result<ExitCode> {
    let args = session.args;
    let limited_by = search.limited_by();
    if args.json {
        session.print(json!({
            "type": "summary", "schema": 1, "traffic": session.described, "trials": trials,
            "max_per_s": search.found(), "loss_threshold_percent": args.loss,
            "resolution_percent": args.resolution, "limited_by": limited_by,
        }))?;
    } else {
        let mut line = match search.found() {
            Some(rate) => format!(
                "highest rate with at most {} % lost: {rate:.0}/s",
                args.loss
            ),
            None => "no rate passed".to_string(),
        };
        line += match limited_by {
            None => "; the limit is above the offered rate: give a higher --rate",
            Some(Verdict::GeneratorTooSlow) => {
                "; the generator is the limit, not the device under test"
            }
            Some(Verdict::ReceiverTooSlow) => {
                "; the receiving port is the limit, not the device under test"
            }
            Some(_) => "",
        };
        session.print(line)?;
    }
    // The condition that was asked for: that some rate passes.
    Ok(match search.found() {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::from(1),
    })
}
