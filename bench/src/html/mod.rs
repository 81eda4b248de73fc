//! `bench html`: how long a browser takes to show the page of 100,000 packets. Each round is a browser
//! that was just started and has seen no page, because that is how a page is opened.
mod browser;
mod recording;
mod report;

use crate::Settings;
use crate::error::{Error, Result};
use crate::hopscope::Hopscope;
use crate::said;
use browser::Browser;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use report::{Figures, Round};
use serde_json::json;
use std::path::Path;
use std::time::Instant;

/// Calls its last argument when the page's script is done with the page.
const READY: &str = "
    const done = arguments[0], root = document.documentElement;
    const look = () => root.dataset.ready && (done(root.dataset.ready), true);
    if (!look()) new MutationObserver(look).observe(root, { attributes: true });";

/// From the begin of the navigation, in milliseconds; and what frames take, from the whole recording to
/// a millionth of it.
const TIMES: &str = "
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    const drawn = performance.getEntriesByName('drawn')[0];
    const { model, timeline } = hopscope, frames = [];
    for (let i = 0; i < 60; i++) {
        timeline.view = { from: 0, to: timeline.end * 0.8 ** i };
        timeline.drawNow();
        frames.push(timeline.frameMs);
    }
    frames.sort((a, b) => a - b);
    return { paint: paint?.startTime, ready: drawn?.startTime, frame_p50: frames[30],
             frame_max: frames[59], packets: model.packets.n, runs: model.runs.n };";

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let hopscope = Hopscope::of(settings);
    let dir = settings.build_dir.join("html");
    std::fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
    let (file, page) = (dir.join("made-up.hop"), dir.join("page.html"));
    let calls = recording::write(&file)?;
    let (from, to) = (file.display().to_string(), page.display().to_string());
    let started = Instant::now();
    hopscope.ask(&["report", &from, "--html", &to])?;
    let made_s = started.elapsed().as_secs_f64();
    let metadata = std::fs::metadata(&page).map_err(Error::file("read", &page))?;
    let page_bytes = metadata.len();

    let rounds = settings.pick(1, 3, 11);
    let (mut all, mut version) = (Vec::new(), String::new());
    for n in 0..rounds {
        settings.say(&format!("round {} of {rounds}", n + 1));
        let (round, of) = open(&dir.join("profile"), &page)?;
        output.sample(json!({"round": n, "measured": round}))?;
        all.push(round);
        version = of;
    }
    let figures = Figures {
        rounds: all,
        calls,
        page_bytes,
        made_s,
        browser: version,
    };
    Ok(output.summary(&host, figures.summary())?)
}

/// One browser, one page, and which browser it is.
fn open(profile: &Path, page: &Path) -> Result<(Round, String)> {
    match std::fs::remove_dir_all(profile) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::file("remove", profile)(e));
        }
        _ => {}
    }
    let browser = Browser::start(profile)?;
    browser.open(page)?;
    let ready = browser.run("draw the page", "async", READY)?;
    if ready != "yes" {
        return Err(Error::Browser {
            doing: "draw the page",
            said: format!("its script ended with {ready}"),
        });
    }
    let times = browser.run("tell its times", "sync", TIMES)?;
    let number = |at| said::number("the page", &times, at);
    let round = Round {
        first_paint_ms: number("/paint")?,
        ready_ms: number("/ready")?,
        frame_p50_ms: number("/frame_p50")?,
        frame_max_ms: number("/frame_max")?,
        packets: number("/packets")? as u64,
        runs: number("/runs")? as u64,
    };
    Ok((round, browser.version()?))
}
