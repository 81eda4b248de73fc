//! `hopscope report --html`, opened, driven and looked at in a real browser.
mod driver;
mod recording;
mod runs;
mod slices;
mod tails;

use anyhow::{Context, Result, ensure};
use driver::Browser;
use hopscope_tests::{Requirement, Suite, hopscope, scratch};
use recording::{HOSTILE, SLOW, What, latency_ns, lost};
use std::path::{Path, PathBuf};

const NEEDS: &[Requirement] = &[Requirement::Chromium];

pub(crate) fn register(suite: &mut Suite) {
    suite
        .case("browser::a_page_of_100000_packets", NEEDS, whole)
        .in_turn();
    suite.case("browser::causes_of_late_packets", NEEDS, tails::causes);
    suite.case("browser::waterfalls_of_slices", NEEDS, slices::waterfalls);
    suite.case("browser::around_one_packet", NEEDS, around);
    suite.case("browser::calls_only_and_packets_only", NEEDS, one_kind);
}

fn page(what: What, more: &[&str]) -> Result<(PathBuf, PathBuf)> {
    let dir = scratch();
    let (recording, page) = (dir.join("nf.hop"), dir.join("page.html"));
    recording::write(&recording, what)?;
    let path = |p: &Path| p.to_str().context("path").map(str::to_owned);
    let (from, to) = (path(&recording)?, path(&page)?);
    let mut words = vec!["report", &from, "--html", &to];
    words.extend_from_slice(more);
    hopscope(&words)?.expect_code(0)?;
    Ok((dir, page))
}

/// What is said of the thing that is picked: the value of a label in the list under the timeline.
fn fact(browser: &Browser, label: &str) -> Result<String> {
    let script = format!(
        "const dt = [...document.querySelectorAll('#facts dt')].find(e => e.textContent === '{label}');
         return dt ? dt.nextSibling.textContent : '';"
    );
    browser.text(&script)
}

/// Nothing of a hostile name became an element, ran, or was refused by the policy.
fn expect_untouched(browser: &Browser) -> Result<()> {
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "the console: {complaints:?}");
    ensure!(
        browser.number("return document.images.length")? == 0.0,
        "a name became an image"
    );
    ensure!(
        browser.number("return document.scripts.length")? == 2.0,
        "a name became a script"
    );
    ensure!(
        browser.text("return document.title")? == "hopscope: nf.hop",
        "a name ran"
    );
    Ok(())
}

fn span(browser: &Browser) -> Result<(f64, f64)> {
    let of = |end: &str| browser.number(&format!("return Number(hopscope.timeline.view.{end})"));
    Ok((of("from")?, of("to")?))
}

/// Where something lies in the window, near its begin: later ones may lie over its end.
fn place(browser: &Browser, kind: &str, id: f64) -> Result<(f64, f64)> {
    browser.run("document.getElementById('lanes').scrollIntoView({ block: 'center' })")?;
    let at = browser.run(&format!(
        "const t = hopscope.timeline, p = t.placeOf({{ kind: '{kind}', id: {id} }});
         const box = t.canvas.getBoundingClientRect();
         return [box.left + t.x(p.from) + Math.min(4, (t.x(p.to) - t.x(p.from)) / 2), box.top + p.y + p.h / 2];"
    ))?;
    let number = |i: usize| at[i].as_f64().with_context(|| at.to_string());
    Ok((number(0)?, number(1)?))
}

fn search(browser: &Browser, text: &str) -> Result<()> {
    browser.run("const s = document.getElementById('search'); s.value = ''; s.focus()")?;
    browser.type_keys(&format!("{text}\u{e007}"))
}

/// As the report writes times: three digits or so, and a unit.
fn text_of(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => return format!("{ns:.0} ns"),
        ns if ns < 999_500.0 => (ns / 1e3, "µs"),
        ns => (ns / 1e6, "ms"),
    };
    let digits = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

fn whole() -> Result<()> {
    let (dir, page) = page(What::Both, &[])?;
    let bytes = std::fs::metadata(&page)?.len();
    ensure!(bytes <= 8_000_000, "a page of {bytes} bytes");
    let browser = Browser::start(&dir, false)?;
    browser.open(&page)?;
    expect_untouched(&browser)?;
    let losses = browser.text("return document.getElementById('losses').textContent")?;
    let gone = (0..recording::PACKETS).filter(|seq| lost(*seq)).count();
    ensure!(losses.contains(&format!("{gone} packets lost")), "{losses}");
    figures(&browser, bytes)?;
    first_view(&browser)?;
    browser.screenshot(&dir.join("slowest.png"))?;
    keyboard(&browser)?;
    browser.screenshot(&dir.join("whole.png"))?;
    finding(&browser)?;
    runs::linked(&browser)?;
    browser.screenshot(&dir.join("runs.png"))?;
    hovering(&browser)?;
    browser.screenshot(&dir.join("hover.png"))?;
    flame(&browser)?;
    browser.screenshot(&dir.join("flame.png"))?;
    expect_untouched(&browser)
}

/// Printed, never asserted: machines are shared.
fn figures(browser: &Browser, bytes: u64) -> Result<()> {
    let script = "
        const paint = performance.getEntriesByName('first-contentful-paint')[0];
        const drawn = performance.getEntriesByName('drawn')[0];
        const frames = [];
        for (let i = 0; i < 40; i++) {
            hopscope.timeline.view = { from: 0, to: hopscope.timeline.end * 0.9 ** i };
            hopscope.timeline.drawNow();
            frames.push(hopscope.timeline.frameMs);
        }
        frames.sort((a, b) => a - b);
        hopscope.timeline.pick(hopscope.timeline.picked);
        return [paint ? paint.startTime : -1, drawn.startTime, frames[20], frames[39]];";
    let figures = browser.run(script)?;
    println!(
        "{bytes} bytes; first paint {} ms, all drawn {} ms; a frame p50 {} ms, max {} ms",
        figures[0], figures[1], figures[2], figures[3]
    );
    Ok(())
}

/// The page opens at the packet that was slow, and says so with its numbers.
fn first_view(browser: &Browser) -> Result<()> {
    let packet = fact(browser, "packet")?;
    ensure!(packet == SLOW.to_string(), "opened at packet {packet}");
    let latency = fact(browser, "latency")?;
    let expected = text_of(latency_ns(SLOW));
    ensure!(latency.starts_with(&expected), "{latency}, not {expected}");
    let colours = browser.number(
        "const t = hopscope.timeline, c = t.canvas;
         const { data } = t.ctx.getImageData(0, 0, c.width, c.height);
         return new Set(new Uint32Array(data.buffer)).size;",
    )?;
    ensure!(
        colours > 20.0,
        "the timeline has {colours} colours: it is not drawn"
    );
    Ok(())
}

fn keyboard(browser: &Browser) -> Result<()> {
    browser.run("document.getElementById('lanes').focus()")?;
    let (from, to) = span(browser)?;
    browser.type_keys("+")?;
    let (closer_from, closer_to) = span(browser)?;
    let part = (closer_to - closer_from) / (to - from);
    ensure!(
        (0.49..0.51).contains(&part),
        "+ made {part} of what was seen"
    );
    browser.type_keys("\u{e014}")?;
    let (moved, _) = span(browser)?;
    ensure!(
        moved > closer_from,
        "the right arrow moved from {closer_from} to {moved}"
    );
    browser.type_keys("-")?;
    let (wide_from, wide_to) = span(browser)?;
    ensure!(
        ((wide_to - wide_from) / (to - from) - 1.0).abs() < 0.01,
        "- does not undo +"
    );
    browser.type_keys("0")?;
    let (all_from, all_to) = span(browser)?;
    let end = browser.number("return hopscope.model.data.end")?;
    ensure!(
        all_from <= 0.0 && all_to >= end,
        "0 shows {all_from} to {all_to} of {end}"
    );
    Ok(())
}

fn finding(browser: &Browser) -> Result<()> {
    search(browser, "packet 500")?;
    let latency = fact(browser, "latency")?;
    let expected = text_of(latency_ns(500));
    ensure!(
        fact(browser, "packet")? == "500" && latency.starts_with(&expected),
        "{latency}, not {expected}"
    );
    search(browser, "acl")?;
    ensure!(
        fact(browser, "call")? == "acl",
        "searched for acl: {}",
        fact(browser, "call")?
    );
    let began = fact(browser, "began")?;
    ensure!(
        began.starts_with("0.61"),
        "the longest acl is in packet {SLOW}'s run, not at {began}"
    );
    search(browser, "packet 5")?;
    ensure!(
        fact(browser, "latency")?.starts_with("lost"),
        "packet 5 is lost"
    );
    search(browser, "onerror")?;
    let name = fact(browser, "call")?;
    // What would be invisible is shown as such; all else is as in the file.
    let expected = hopscope_event::Printable::new(HOSTILE).to_string();
    ensure!(name == expected, "{name}, not {expected}");
    search(browser, "no such thing")?;
    let found = browser.text("return document.getElementById('found').textContent")?;
    ensure!(found.starts_with("nothing"), "{found}");
    browser.type_keys("\u{e00c}")
}

fn hovering(browser: &Browser) -> Result<()> {
    search(browser, &format!("packet {SLOW}"))?;
    let tip = || {
        browser
            .text("const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent")
    };
    for (kind, id, word) in [
        ("packet", SLOW as f64, format!("packet{SLOW}latency")),
        (
            "packet",
            SLOW as f64 + 1.0,
            format!("packet{}latency", SLOW + 1),
        ),
    ] {
        let (x, y) = place(browser, kind, id)?;
        browser.mouse(x, y, &[])?;
        let said = tip()?;
        ensure!(said.starts_with(&word), "over {kind} {id}: {said:?}");
    }
    let (x, y) = place(browser, "packet", SLOW as f64 + 1.0)?;
    browser.click(x, y)?;
    let packet = fact(browser, "packet")?;
    ensure!(
        packet == (SLOW + 1).to_string(),
        "clicked packet {}, got {packet}",
        SLOW + 1
    );
    browser.mouse(x, y, &[])
}

fn flame(browser: &Browser) -> Result<()> {
    browser.run("document.getElementById('flame').scrollIntoView()")?;
    let names =
        "return [...document.querySelectorAll('#flames g')].map(g => g.dataset.name).join('|')";
    let all = browser.text(names)?;
    for name in ["run", "acl", "nat"] {
        ensure!(all.split('|').any(|n| n == name), "no {name} in {all}");
    }
    browser.run("[...document.querySelectorAll('#flames g')].find(g => g.dataset.name === 'acl').dispatchEvent(new MouseEvent('click'))")?;
    let closer = browser.text(names)?;
    ensure!(
        !closer.split('|').any(|n| n == "nat"),
        "acl does not call nat: {closer}"
    );
    Ok(())
}

fn around() -> Result<()> {
    let (dir, page) = page(What::Both, &["--around", "packet:777"])?;
    let bytes = std::fs::metadata(&page)?.len();
    ensure!(bytes < 2_000_000, "a page of {bytes} bytes");
    let browser = Browser::start(&dir, true)?;
    browser.open(&page)?;
    expect_untouched(&browser)?;
    ensure!(
        fact(&browser, "packet")? == "777",
        "opened at {}",
        fact(&browser, "packet")?
    );
    let shown = browser.number("return hopscope.model.packets.n")?;
    ensure!(
        shown < recording::PACKETS as f64,
        "all packets are in the page"
    );
    let said = browser.text("return document.querySelector('header').textContent")?;
    let part = format!("of {} packets", "100,000");
    ensure!(
        said.contains(&part),
        "the page does not say what part it shows: {said}"
    );
    browser.screenshot(&dir.join("dark.png"))
}

fn one_kind() -> Result<()> {
    for (what, absent) in [(What::Calls, "packets"), (What::Packets, "flames")] {
        let (dir, page) = page(what, &[])?;
        let browser = Browser::start(&dir, false)?;
        browser.open(&page)?;
        expect_untouched(&browser)?;
        let label = if what == What::Calls {
            "call"
        } else {
            "packet"
        };
        let picked = fact(&browser, label)?;
        let expected = if what == What::Calls { "run" } else { "61803" };
        ensure!(picked == expected, "opened at {label} {picked:?}");
        let there = browser.run(&format!(
            "return document.getElementById('{absent}') !== null"
        ))?;
        ensure!(there == false, "#{absent} is there without anything in it");
        browser.screenshot(&dir.join("one-kind.png"))?;
    }
    Ok(())
}
