//! `hopscope functions`: what can be measured, and why not the rest.
mod summary;

use crate::status::text_line;
use anyhow::bail;
use clap::{ArgGroup, Args};
use hopscope_probe::instrument::body::Refusal;
use hopscope_probe::listing::{Listed, ListedModule, Listing};
use hopscope_probe::locate::Lines;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_process::programs;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["pid", "binary"])))]
pub struct FunctionsArgs {
    /// List functions of every module mapped in this process
    #[arg(short, long, value_name = "PID")]
    pid: Option<i32>,
    /// List functions of a file, or of a program that runs or is in PATH
    #[arg(short, long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// List only these: name, module!name, glob or /regex/ (repeatable)
    ///
    /// A module is its file name, a link or path to it, or the name the process was started under.
    #[arg(short, long = "function", value_name = "PATTERN")]
    functions: Vec<String>,
    /// Exclude functions that match this pattern (repeatable)
    #[arg(short = 'x', long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Print one line per module: measurable functions, reasons for the others
    #[arg(long)]
    summary: bool,
    /// Include functions that exceptions could unwind, as record does
    #[arg(long)]
    assume_no_exceptions: bool,
    /// Print one JSON object per line on stdout
    #[arg(long)]
    json: bool,
}

pub fn run(args: FunctionsArgs) -> anyhow::Result<ExitCode> {
    let patterns = Pattern::parse_all(&args.functions)?;
    let excluded = Pattern::parse_all(&args.exclude)?;
    let mut listing = match (&args.binary, args.pid) {
        (Some(path), _) => {
            let path = programs::file(path)?;
            Listing::of_file(&path, args.assume_no_exceptions)?
        }
        (None, Some(pid)) => Listing::of_process(pid, args.assume_no_exceptions)?,
        (None, None) => bail!("give -p PID or -b FILE"),
    };
    if listing.modules.is_empty() {
        match (listing.unreadable.pop(), args.pid) {
            (Some((_, why)), _) => return Err(why.into()),
            (None, Some(pid)) => {
                bail!(
                    "process {pid} has no executable mappings (a kernel thread, or it has exited)"
                )
            }
            (None, None) => bail!("nothing to list"),
        }
    }
    let (patterns, excluded) = (listing.resolve(&patterns)?, listing.resolve(&excluded)?);
    let mut listed = listing.select(&patterns);
    let is_out = |l: &Listed| {
        let path = l.module.path().to_string_lossy();
        excluded.iter().any(|p| p.matches(&path, l.function))
    };
    let all = listed.len();
    listed.retain(|l| !is_out(l));
    if listed.is_empty() && all > 0 {
        bail!("-x excludes all of the {all} functions that match");
    }
    if listed.is_empty() {
        bail!("{}", nothing(&args, &listing, &patterns));
    }
    let out = BufWriter::new(std::io::stdout().lock());
    match (args.summary, args.json) {
        (false, true) => json(out, &listing, &listed)?,
        (false, false) => text(out, &listing, &listed)?,
        (true, true) => summary::json(out, &listing, &listed)?,
        (true, false) => summary::text(out, &listing, &listed)?,
    }
    if all > listed.len() {
        crate::status::say!("{} functions left out by -x", all - listed.len());
    }
    for pattern in listing
        .unmatched(&patterns)
        .into_iter()
        .chain(listing.unmatched(&excluded))
    {
        crate::status::say!("nothing matches {pattern}");
    }
    Ok(ExitCode::SUCCESS)
}

fn nothing(args: &FunctionsArgs, listing: &Listing, patterns: &[Pattern]) -> String {
    if patterns.is_empty() {
        let modules: Vec<String> = listing
            .modules
            .iter()
            .map(|m| m.path().display().to_string())
            .collect();
        return format!(
            "no functions in {}: it has no symbols and no .eh_frame",
            modules.join(", ")
        );
    }
    let asked = args.functions.join(", ");
    let hint = match listing.hint(patterns) {
        none if none.is_empty() => "; without -f all names are listed".to_owned(),
        hint => hint,
    };
    format!("nothing matches {asked}{hint}")
}

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

struct Counts {
    accepted: usize,
    refused: usize,
    by_class: BTreeMap<&'static str, usize>,
    /// Of a file: accepted, and refused in a process where another module raises exceptions.
    not_in_company: Option<usize>,
}

fn count(listing: &Listing, listed: &[Listed]) -> Counts {
    let mut by_class = BTreeMap::new();
    for why in listed.iter().filter_map(|l| l.verdict.as_ref().err()) {
        *by_class.entry(why.class()).or_default() += 1;
    }
    let refused = by_class.values().sum();
    Counts {
        accepted: listed.len() - refused,
        refused,
        by_class,
        not_in_company: listing
            .depends_on_company()
            .then(|| listed.iter().filter(|l| l.in_company.is_some()).count()),
    }
}

/// What a live process may add to the verdicts on a file.
fn company(not_in_company: Option<usize>) -> Option<String> {
    let n = not_in_company.filter(|n| *n > 0)?;
    Some(format!(
        "{n} of these not in a process where another module raises exceptions: -p PID looks at all \
         modules of a process"
    ))
}

fn text(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> anyhow::Result<()> {
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

fn json(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> anyhow::Result<()> {
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

/// What was not listed, and the totals.
fn json_end(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> anyhow::Result<()> {
    for (path, why) in &listing.unreadable {
        let reason = why.to_string();
        let line =
            serde_json::json!({"type": "unreadable", "schema": 1, "path": path, "reason": reason});
        writeln!(out, "{line}")?;
    }
    let counts = count(listing, listed);
    let line = serde_json::json!({
        "type": "summary", "schema": 1, "accepted": counts.accepted, "refused": counts.refused,
        "refused_by_class": counts.by_class, "unreadable": listing.unreadable.len(),
        "accepted_if_none_raises_only": counts.not_in_company,
    });
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
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
