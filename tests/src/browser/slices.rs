//! The page of a recording of the kernel's path.
use super::Browser;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{hopscope, repository, scratch};

/// Every packet opens to a bar for each slice, one after the other, as long as they took.
pub(super) fn waterfalls() -> Result<()> {
    let dir = scratch();
    let page = dir.join("slices.html");
    let recording = repository().join("measure/trace/tests/golden/v1.3-slices.hop");
    let (from, to) = (
        recording.to_str().context("a path")?,
        page.to_str().context("a path")?,
    );
    hopscope(&["report", from, "--html", to])?.expect_code(0)?;
    let browser = Browser::start(&dir, false)?;
    browser.open_plain(&page)?;
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "the console: {complaints:?}");
    let count = |what: &str| {
        browser.number(&format!(
            "return document.querySelectorAll('{what}').length"
        ))
    };
    // The fifteen packets of the file, as the slowest and as the first.
    ensure!(count("details")? == 30.0, "{} packets", count("details")?);
    ensure!(count("script")? == 0.0, "there is a script");
    ensure!(count("details[open]")? == 0.0, "a packet is open");
    browser.run("document.querySelector('details summary').click()")?;
    ensure!(count("details[open]")? == 1.0, "the packet did not open");
    let bars = "[...document.querySelectorAll('details')][0].querySelectorAll('rect')";
    ensure!(
        browser.number(&format!("return {bars}.length"))? == 16.0,
        "not sixteen bars"
    );
    let apart = format!(
        "const b = [...{bars}].map(r => r.getBoundingClientRect());
         return Math.max(...b.slice(1).map((r, i) => Math.abs(r.left - b[i].right)));"
    );
    ensure!(
        browser.number(&apart)? < 3.0,
        "a bar does not begin where the one before ends"
    );
    // The reader's way to the processor is the longest of this packet.
    let longest = format!(
        "const b = [...{bars}];
         b.sort((x, y) => y.getBoundingClientRect().width - x.getBoundingClientRect().width);
         return b[0].parentNode.querySelector('title').textContent;"
    );
    let longest = browser.text(&longest)?;
    ensure!(
        longest.starts_with("rx.schedule: rx_waking..rx_sched_in, read 4417"),
        "{longest}"
    );
    browser.screenshot(&dir.join("slices.png"))
}
