//! A row for each function.
use super::{company, count, json_end};
use crate::error::Result;
use crate::status::text_line;
use hopscope_probe::instrument::body::Refusal;
use hopscope_probe::listing::{Listed, ListedModule, Listing};
use hopscope_probe::locate::Lines;
use std::io::Write;

/// File and line of functions that come module by module: DWARF is read once for each, and not
/// at all for modules without a match.
#[derive(Default)]
struct Places<'a> {
    module: Option<&'a ListedModule>,
    lines: Option<Lines>,
}

impl<'a> Places<'a> {
    fn of(&mut self, listed: &Listed<'a>) -> Option<(String, u32)> {
        if !self.module.is_some_and(|m| std::ptr::eq(m, listed.module)) {
            self.module = Some(listed.module);
            self.lines = listed.module.image.lines();
        }
        let function = listed.function;
        self.lines.as_ref()?.find(function.svma, function.size)
    }
}

pub(super) fn text(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> Result<()> {
    let mut places = Places::default();
    writeln!(
        out,
        "{:<14} {:>7}  {:<10}  FUNCTION AND VERDICT",
        "ADDRESS", "BYTES", "NAME FROM"
    )?;
    for l in listed {
        let address = l.module.avma(l.function).unwrap_or(l.function.svma);
        let (module, f) = (l.module.basename(), l.function);
        let place = places.of(l).map_or(String::new(), |(file, line)| {
            format!("  {}:{line}", short(&file))
        });
        let from = f.source.as_str();
        let verdict = match &l.verdict {
            Ok(()) if l.in_company.is_some() => {
                "relocate, but not where another module raises exceptions".to_owned()
            }
            Ok(()) => "relocate".to_owned(),
            Err(why) => format!("refused: {why}"),
        };
        text_line!(
            out,
            "{address:#014x} {:>7}  {from:<10}  {module}!{}{place}  {verdict}",
            f.size,
            f.name
        )?;
    }
    for (path, why) in &listing.unreadable {
        text_line!(out, "not listed: {}: {why}", path.display())?;
    }
    let counts = count(listing, listed);
    let (accepted, refused) = (counts.accepted, counts.refused);
    writeln!(
        out,
        "{accepted} functions can be measured, {refused} are refused"
    )?;
    if let Some(line) = company(counts.not_in_company) {
        writeln!(out, "{line}")?;
    }
    for (class, n) in &counts.by_class {
        writeln!(out, "{n:>12}  {class}")?;
    }
    out.flush()?;
    Ok(())
}

pub(super) fn json(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> Result<()> {
    let mut places = Places::default();
    for l in listed {
        let f = l.function;
        let (file, line) = places.of(l).unzip();
        let why = l.verdict.as_ref().err();
        let row = serde_json::json!({
            "type": "function", "schema": 1, "module": l.module.basename(), "path": l.module.path(),
            "name": f.name, "symbol": f.raw_name, "aliases": f.aliases, "file": file, "line": line,
            "address": l.module.avma(f).unwrap_or(f.svma), "svma": f.svma, "size": f.size,
            "source": f.source.as_str(), "fragments": f.fragments.len(),
            "verdict": if why.is_none() { "relocate" } else { "refused" },
            "class": why.map(Refusal::class), "reason": why.map(ToString::to_string),
            "refused_if_others_raise": listing.depends_on_company().then_some(why.is_some() || l.in_company.is_some()),
        });
        writeln!(out, "{row}")?;
    }
    json_end(out, listing, listed)
}

/// The last two parts of a path.
fn short(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/');
    slashes.nth(1).map_or(path, |(at, _)| &path[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_paths_keep_their_folder() {
        assert_eq!(short("/usr/src/nf/acl.c"), "nf/acl.c");
        assert_eq!(short("acl.c"), "acl.c");
    }
}
