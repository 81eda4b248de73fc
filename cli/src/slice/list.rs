//! `hopscope slice -L`: regions, points, and the hooks that this kernel offers for them.
use super::args::SliceArgs;
use super::target;
use hopscope_event::slice::Point;
use hopscope_session::slice::interfaces_of;
use hopscope_slice::programs::{Offer, offers};
use std::io::Write;
use std::process::ExitCode;

pub(super) fn run(args: &SliceArgs) -> anyhow::Result<ExitCode> {
    let regions = target::regions(args)?;
    let offers = offers()?;
    let mut out = std::io::stdout().lock();
    if args.shown.json {
        for offer in offers.iter().filter(|offer| offer.hook.stamps) {
            let row = serde_json::json!({
                "type": "hook", "schema": 1,
                "point": offer.hook.point.name(), "hook": offer.hook.name,
                "backend": offer.hook.backend().name(), "missing": offer.missing,
            });
            writeln!(out, "{row}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "regions ({}):", args.live.regions)?;
    for region in &regions {
        writeln!(
            out,
            "  {:<14} {} .. {}",
            region.name, region.from, region.to
        )?;
    }
    writeln!(out, "\npoints, and the hooks that stamp them here:")?;
    for point in Point::ALL {
        let of_point = || {
            offers
                .iter()
                .filter(|offer| offer.hook.point == *point && offer.hook.stamps)
        };
        let there: Vec<&str> = of_point()
            .filter(|offer| offer.missing.is_none())
            .map(|offer| offer.hook.name)
            .collect();
        let words = if there.is_empty() {
            why(of_point())
        } else {
            there.join(", ")
        };
        writeln!(
            out,
            "  {:<17} {words}\n  {:<17}   {}",
            point.name(),
            "",
            point.what()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// As tcpdump numbers them; of `--netns`, where it is given.
pub(super) fn interfaces(args: &SliceArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    for interface in interfaces_of(args.live.netns.as_deref())? {
        let name = hopscope_report::printable(&interface.name);
        writeln!(out, "{}.{name}", interface.ifindex)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn why<'a>(offers: impl Iterator<Item = &'a Offer>) -> String {
    let reasons: Vec<&str> = offers
        .filter_map(|offer| offer.missing.as_deref())
        .collect();
    if reasons.is_empty() {
        "none: its slice is part of the next".to_owned()
    } else {
        format!(
            "none ({}): its slice is part of the next",
            reasons.join("; ")
        )
    }
}
