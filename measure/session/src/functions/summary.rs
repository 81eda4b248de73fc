//! A line for each module, and the reasons without addresses.
use super::{company, count, json_end};
use crate::error::Result;
use crate::status::text_line;
use hopscope_probe::listing::{Listed, ListedModule, Listing};
use std::collections::BTreeMap;
use std::io::Write;

struct Module<'a> {
    module: &'a ListedModule,
    functions: usize,
    measurable: usize,
    /// Of a file: measurable in a process where another module raises exceptions.
    in_company: Option<usize>,
    /// Most first.
    refused: Vec<(String, usize)>,
}

fn modules<'a>(listing: &'a Listing, listed: &[Listed<'a>]) -> Vec<Module<'a>> {
    let of = |module: &'a ListedModule| {
        let mine = || listed.iter().filter(|l| std::ptr::eq(l.module, module));
        let mut refused: BTreeMap<String, usize> = BTreeMap::new();
        for why in mine().filter_map(|l| l.verdict.as_ref().err()) {
            *refused.entry(why.kind()).or_default() += 1;
        }
        let mut refused: Vec<(String, usize)> = refused.into_iter().collect();
        refused.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let measurable = mine().filter(|l| l.verdict.is_ok()).count();
        let lost = mine().filter(|l| l.in_company.is_some()).count();
        Module {
            module,
            functions: mine().count(),
            measurable,
            in_company: listing.depends_on_company().then(|| measurable - lost),
            refused,
        }
    };
    listing
        .modules
        .iter()
        .map(of)
        .filter(|m| m.functions > 0)
        .collect()
}

pub(super) fn text(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> Result<()> {
    writeln!(
        out,
        "{:>9} {:>10} {:>7}  MODULE AND REASONS",
        "FUNCTIONS", "MEASURABLE", ""
    )?;
    for m in modules(listing, listed) {
        let percent = 100.0 * m.measurable as f64 / m.functions as f64;
        let (functions, measurable, name) = (m.functions, m.measurable, m.module.basename());
        text_line!(
            out,
            "{functions:>9} {measurable:>10} {percent:>5.1} %  {name}"
        )?;
        for (reason, n) in &m.refused {
            text_line!(out, "{n:>9} refused             {reason}")?;
        }
    }
    for (path, why) in &listing.unreadable {
        text_line!(out, "not listed: {}: {why}", path.display())?;
    }
    let counts = count(listing, listed);
    writeln!(
        out,
        "{} functions can be measured, {} are refused",
        counts.accepted, counts.refused
    )?;
    if let Some(line) = company(counts.not_in_company) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

pub(super) fn json(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> Result<()> {
    for m in modules(listing, listed) {
        let refused: BTreeMap<_, _> = m.refused.into_iter().collect();
        let line = serde_json::json!({
            "type": "module", "schema": 1, "module": m.module.basename(), "path": m.module.path(),
            "functions": m.functions, "measurable": m.measurable,
            "measurable_if_others_raise": m.in_company, "refused_by_reason": refused,
        });
        writeln!(out, "{line}")?;
    }
    json_end(out, listing, listed)
}
