//! Functions of a file or of a process listed: which can be measured, and why not the rest.
mod rows;
mod summary;

use crate::error::{Result, refuse};
use hopscope_probe::listing::{Listed, Listing};
use hopscope_probe::locate::pattern::Pattern;
use hopscope_process::programs;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct FunctionsRequest {
    pub place: Where,
    /// Patterns; none: all functions.
    pub functions: Vec<String>,
    pub exclude: Vec<String>,
    pub assume_no_exceptions: bool,
    /// A line for each module.
    pub is_summary: bool,
    pub json: bool,
}

#[derive(Debug, Clone)]
pub enum Where {
    /// By its path, or by the name of a program that runs or that the shell would find.
    File(PathBuf),
    Process(i32),
}

/// # Errors
/// Nothing matches, or it cannot be looked into; those of `out`.
pub fn list(request: &FunctionsRequest, out: impl Write) -> Result<()> {
    let patterns = Pattern::parse_all(&request.functions)?;
    let excluded = Pattern::parse_all(&request.exclude)?;
    let assume = request.assume_no_exceptions;
    let mut listing = match &request.place {
        Where::File(path) => Listing::of_file(&programs::file(path)?, assume)?,
        Where::Process(pid) => Listing::of_process(*pid, assume)?,
    };
    if listing.modules.is_empty() {
        match (listing.unreadable.pop(), &request.place) {
            (Some((_, why)), _) => return Err(why.into()),
            (None, Where::Process(pid)) => {
                refuse!(
                    "process {pid} has no executable mappings (a kernel thread, or it has exited)"
                )
            }
            (None, Where::File(_)) => refuse!("nothing to list"),
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
        refuse!("-x excludes all of the {all} functions that match");
    }
    if listed.is_empty() {
        refuse!("{}", nothing(&request.functions, &listing, &patterns));
    }
    match (request.is_summary, request.json) {
        (false, true) => rows::json(out, &listing, &listed)?,
        (false, false) => rows::text(out, &listing, &listed)?,
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
    Ok(())
}

fn nothing(functions: &[String], listing: &Listing, patterns: &[Pattern]) -> String {
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
    let asked = functions.join(", ");
    let hint = match listing.hint(patterns) {
        none if none.is_empty() => "; without -f all names are listed".to_owned(),
        hint => hint,
    };
    format!("nothing matches {asked}{hint}")
}

struct ListedCounts {
    accepted: usize,
    refused: usize,
    by_class: BTreeMap<&'static str, usize>,
    /// Of a file: accepted, and refused in a process where another module raises exceptions.
    not_in_company: Option<usize>,
}

fn count(listing: &Listing, listed: &[Listed]) -> ListedCounts {
    let mut by_class = BTreeMap::new();
    for why in listed.iter().filter_map(|l| l.verdict.as_ref().err()) {
        *by_class.entry(why.class()).or_default() += 1;
    }
    let refused = by_class.values().sum();
    ListedCounts {
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

/// What was not listed, and the totals.
fn json_end(mut out: impl Write, listing: &Listing, listed: &[Listed]) -> Result<()> {
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
