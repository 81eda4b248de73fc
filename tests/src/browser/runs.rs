//! From a packet to the run that handled it and back, by clicks.
use super::driver::Browser;
use super::recording::{self, SLOW, lost};
use super::{fact, search, text_of};
use anyhow::{Context, Result, bail, ensure};

/// Clicks, as a person does, in the middle of an element.
pub(super) fn click_on(browser: &Browser, element: &str) -> Result<()> {
    let at = browser.run(&format!(
        "const e = {element};
         if (!e) return null;
         e.scrollIntoView({{ block: 'center' }});
         const box = e.getBoundingClientRect();
         return [box.left + box.width / 2, box.top + box.height / 2];"
    ))?;
    let (Some(x), Some(y)) = (at[0].as_f64(), at[1].as_f64()) else {
        let said = browser.text("return document.getElementById('facts').textContent")?;
        bail!("there is no {element}; picked is {said:?}");
    };
    browser.click(x, y)
}

/// Clicks what stands behind a label in the list under the timeline.
pub(super) fn follow(browser: &Browser, label: &str) -> Result<()> {
    let found =
        format!("find(e => e.textContent === '{label}')?.nextSibling.querySelector('button')");
    click_on(
        browser,
        &format!("[...document.querySelectorAll('#facts dt')].{found}"),
    )
}

pub(super) fn linked(browser: &Browser) -> Result<()> {
    let header = browser.text("return document.querySelector('header').textContent")?;
    ensure!(header.contains("packets and runs: "), "{header}");
    // The last waited behind the slow one: several runs lie within its latency.
    for seq in [500, SLOW, SLOW + 10] {
        search(browser, &format!("packet {seq}"))?;
        let run = fact(browser, "run")?;
        let began = recording::waited_ns(seq);
        let expected = format!("{seq}, which began {} after it left", text_of(began));
        ensure!(
            run == expected,
            "packet {seq}: run {run:?}, not {expected:?}"
        );
        follow(browser, "run")?;
        let (ix, packets) = (fact(browser, "run")?, fact(browser, "packets")?);
        ensure!(
            ix == seq.to_string() && packets == "1",
            "the run of packet {seq} is run {ix:?} of {packets:?} packets"
        );
        let took = text_of(recording::ran_ns(seq));
        ensure!(
            fact(browser, "took")?.starts_with(&took),
            "run {ix} took {}, not {took}",
            fact(browser, "took")?
        );
        follow(browser, "packet")?;
        let (packet, batch) = (fact(browser, "packet")?, fact(browser, "batch")?);
        ensure!(
            packet == seq.to_string() && batch == "alone in its run",
            "run {ix} leads to packet {packet:?}, {batch:?}"
        );
    }
    let gone = (0..recording::PACKETS)
        .find(|seq| lost(*seq))
        .context("one")?;
    search(browser, &format!("packet {gone}"))?;
    let run = fact(browser, "run")?;
    ensure!(run.is_empty(), "packet {gone} is lost, and has run {run}");
    search(browser, &format!("packet {SLOW}"))
}
