//! Causes of late packets: a list that leads to the packet and to the run in which it began.
use super::driver::Browser;
use super::recording::{HOSTILE, What, meets_slow};
use super::runs::{click_on, follow};
use super::{expect_untouched, fact, page, span};
use anyhow::{Context, Result, ensure};

const CAUSE: &str = "document.querySelector('#tails .cause')";

pub(super) fn causes() -> Result<()> {
    let (dir, page) = page(What::Tails, &[])?;
    let browser = Browser::start(&dir, false)?;
    browser.open(&page)?;
    expect_untouched(&browser)?;
    listed(&browser)?;
    browser.screenshot(&dir.join("opened.png"))?;
    let before = span(&browser)?;
    click_on(&browser, &format!("{CAUSE}.querySelector('button')"))?;
    let run = told(&browser)?;
    browser.screenshot(&dir.join("cause.png"))?;
    zoomed(&browser, before, run)?;
    followed(&browser, run)?;
    browser.run("document.getElementById('tails').scrollIntoView()")?;
    browser.screenshot(&dir.join("tails.png"))?;
    expect_untouched(&browser)
}

/// What would be invisible is shown as such.
fn name() -> String {
    hopscope_event::Printable::new(HOSTILE).to_string()
}

/// The planted cause comes first; its packets are most of the late ones.
fn listed(browser: &Browser) -> Result<()> {
    let cause = browser.text(&format!("return {CAUSE}.textContent"))?;
    let expected = format!("slow function {}", name());
    ensure!(
        cause == expected,
        "the first cause is {cause:?}, not {expected:?}"
    );
    let cells = browser.text(
        "return [...document.querySelectorAll('#tails tbody tr:first-child td')].slice(1).map(e => e.textContent).join('|')",
    )?;
    let packets: u64 = cells.split('|').next().context("cells")?.parse()?;
    ensure!(
        (50..=100).contains(&packets),
        "of 100 late packets: {cells} (packets, events, explained, share)"
    );
    let said = browser.text("return document.querySelector('#tails p').textContent")?;
    ensure!(said.contains("(p99.9)"), "{said}");
    Ok(())
}

/// The facts of the example, and which run it began in.
fn told(browser: &Browser) -> Result<u64> {
    let (packet, late) = (fact(browser, "packet")?, fact(browser, "late by")?);
    ensure!(
        late == format!("slow function {}", name()),
        "packet {packet:?} is late by {late:?}"
    );
    let began = fact(browser, "began in")?;
    let run = began.strip_prefix("run ").unwrap_or_default();
    let run: u64 = run.parse().with_context(|| format!("began in {began:?}"))?;
    let seq: u64 = packet.parse()?;
    // Each packet has a run of its own, so their numbers are the same.
    ensure!(
        meets_slow(run) && (run..run + 15).contains(&seq),
        "packet {seq} is led back to run {run}"
    );
    Ok(run)
}

/// The view holds the whole chain, closer than before, and the run is marked in the colour of errors.
fn zoomed(browser: &Browser, before: (f64, f64), run: u64) -> Result<()> {
    let (from, to) = span(browser)?;
    ensure!(
        (from, to) != before,
        "the timeline stayed at {from} to {to}"
    );
    let seen = browser.run(&format!(
        "const t = hopscope.timeline, id = hopscope.model.runAt.get({run});
         t.drawNow();
         const p = t.placeOf({{ kind: 'run', id }}), packet = t.placeOf(t.picked);
         const scale = devicePixelRatio || 1, x = (t.x(p.from) + t.x(p.to)) / 2;
         const [r, g, b] = t.ctx.getImageData(x * scale, (p.y + p.h / 2) * scale, 1, 1).data;
         const probe = document.createElement('canvas').getContext('2d');
         probe.fillStyle = t.colours.bad;
         probe.fillRect(0, 0, 1, 1);
         const [r2, g2, b2] = probe.getImageData(0, 0, 1, 1).data;
         return [p.from, packet.to, Math.abs(r - r2) + Math.abs(g - g2) + Math.abs(b - b2)];"
    ))?;
    let number = |i: usize| seen[i].as_f64().with_context(|| seen.to_string());
    ensure!(
        from <= number(0)? && number(1)? <= to && (to - from) < 3.0 * (number(1)? - number(0)?),
        "{from} to {to} is seen; run {run} and the packet: {seen}"
    );
    // What is picked lies over it as a veil.
    ensure!(number(2)? < 120.0, "run {run} is not marked: {seen}");
    Ok(())
}

/// The run can be looked at with the chain still there; Escape ends it.
fn followed(browser: &Browser, run: u64) -> Result<()> {
    let pressed =
        || browser.number("return document.querySelectorAll('#tails [aria-pressed=true]').length");
    ensure!(pressed()? > 0.0, "the cause that was clicked is not marked");
    follow(browser, "began in")?;
    ensure!(
        fact(browser, "run")? == run.to_string() && pressed()? > 0.0,
        "followed to run {:?}, {} marked",
        fact(browser, "run")?,
        pressed()?
    );
    browser.run("document.getElementById('lanes').focus()")?;
    browser.type_keys("\u{e00c}")?;
    ensure!(pressed()? == 0.0, "Escape leaves {} marked", pressed()?);
    let chain = browser.run("return hopscope.timeline.chain === null")?;
    ensure!(chain == true, "Escape leaves the chain");
    Ok(())
}
