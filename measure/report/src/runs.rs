//! Passes of the data path: how long they took, and what in them the time went to.
use crate::json_line::{Object, line};
use crate::recording::Names;
use crate::units::{Scale, grouped, share};
use hopscope_analyze::{Distribution, PartInRuns, Root, RootChoice, Run, RunCounts, RunStats};
use hopscope_event::{FunctionId, Tsc};
use std::io::{self, Write};

/// Everything that the report by run shows.
pub struct RunReport<'a> {
    pub names: &'a Names<'a>,
    pub scale: Scale,
    /// Of the recording.
    pub start: Tsc,
    pub root: &'a Root,
    pub counts: &'a RunCounts,
    pub stats: &'a RunStats,
    /// The longest ones, longest first.
    pub longest: &'a [Run],
}

/// What a run is, in words.
pub(crate) fn root_text(names: &Names<'_>, root: &Root) -> String {
    let name = names.qualified(root.choice.function());
    let what = match root.choice {
        RootChoice::Function(_) => format!("each outermost call of {name}, from entry to exit"),
        RootChoice::PollingLoop(_) => format!(
            "each return to the polling loop: from the entry of {name} to the end of the last call \
             before its next"
        ),
    };
    match &root.suggested_because {
        None => what,
        Some(why) => format!("{what}\n           suggested: {why}; --root names another"),
    }
}

/// Largest part of the runs' time first.
fn parts<'a>(r: &'a RunReport<'_>) -> Vec<(FunctionId, &'a PartInRuns)> {
    let mut parts: Vec<_> = r.stats.parts().collect();
    parts.sort_by_cached_key(|(f, p)| (std::cmp::Reverse(p.own_ticks), r.names.qualified(*f)));
    parts
}

/// What the own times of all functions add up to.
fn whole(r: &RunReport<'_>) -> i128 {
    r.stats.parts().map(|(_, p)| p.own_ticks).sum()
}

fn mean(sum: i128, n: u64) -> i128 {
    sum / i128::from(n.max(1))
}

pub fn write_runs(out: &mut impl Write, r: &RunReport<'_>) -> io::Result<()> {
    writeln!(out, "run        {}", root_text(r.names, r.root))?;
    counts(out, r.counts)?;
    if r.stats.runs == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "\nlength     {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "mean", "p50", "p90", "p99", "p99.9", "max"
    )?;
    let s = r.stats;
    if s.is_corrected() {
        length(out, r, "corrected", s.ticks_corrected, &s.length_corrected)?;
    }
    length(out, r, "as measured", s.ticks, &s.length)?;
    if s.off_cpu_runs > 0 {
        let ticks = i128::try_from(s.off_cpu_ticks).unwrap_or(i128::MAX);
        writeln!(
            out,
            "off CPU    {} in {} runs ({} of their time, {} of that of all runs)",
            r.scale.text(ticks),
            grouped(s.off_cpu_runs),
            share(ticks, s.off_cpu_runs_ticks),
            share(ticks, s.ticks)
        )?;
    }
    modules(out, r)?;
    longest(out, r)
}

fn length(
    out: &mut impl Write,
    r: &RunReport<'_>,
    name: &str,
    sum: i128,
    d: &Distribution,
) -> io::Result<()> {
    let q = |parts| r.scale.quantile(d.quantile(parts));
    writeln!(
        out,
        "{name:<11}{:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        r.scale.text(mean(sum, r.stats.runs)),
        q(500),
        q(900),
        q(990),
        q(999),
        r.scale.quantile(d.max())
    )
}

fn counts(out: &mut impl Write, c: &RunCounts) -> io::Result<()> {
    writeln!(
        out,
        "runs       {} = {} complete + {} cut by loss + {} left without exit + {} open at the end",
        grouped(c.runs),
        grouped(c.complete),
        grouped(c.cut),
        grouped(c.left),
        grouped(c.open_at_end)
    )?;
    for (count, what) in count_words(c).iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{:>14}  {what}", grouped(*count))?;
    }
    Ok(())
}

fn count_words(c: &RunCounts) -> [(u64, &'static str); 8] {
    [
        (
            c.idle_passes,
            "passes of the loop did nothing but poll; they are no runs",
        ),
        (c.outside_window, "runs began outside the selected time"),
        (c.out_of_order, "runs are listed after one that ended later"),
        (c.overfull, "runs have more calls or values than are kept"),
        (c.calls_left_out, "calls were left out of these"),
        (c.values_left_out, "captured values were left out of these"),
        (c.calls_outside, "calls belong to no run"),
        (c.late_ends, "calls were seen to end after their run had"),
    ]
}

fn modules(out: &mut impl Write, r: &RunReport<'_>) -> io::Result<()> {
    let own = if r.stats.is_corrected() {
        "own time in a run, corrected"
    } else {
        "own time in a run, not corrected"
    };
    writeln!(out, "\n{:>39}{own:^50}{:>10}", "", "total")?;
    writeln!(
        out,
        "{:>10} {:>10} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  function",
        "runs", "calls", "calls/run", "share", "mean", "p50", "p99", "p99.9", "max", "mean"
    )?;
    let whole = whole(r);
    for (function, p) in parts(r) {
        let q = |parts| r.scale.quantile(p.own.quantile(parts));
        writeln!(
            out,
            "{:>10} {:>10} {:>9.2} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  {}",
            grouped(p.runs),
            grouped(p.calls),
            p.calls as f64 / p.runs.max(1) as f64,
            share(p.own_ticks, whole),
            r.scale.text(mean(p.own_ticks, p.runs)),
            q(500),
            q(990),
            q(999),
            r.scale.quantile(p.own.max()),
            r.scale.text(mean(p.total_ticks, p.runs)),
            r.names.qualified(function)
        )?;
    }
    Ok(())
}

fn longest(out: &mut impl Write, r: &RunReport<'_>) -> io::Result<()> {
    if r.longest.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nthe {} longest, as measured\n{:>10} {:>14} {:>9} {:>7} {:>9}  {:<24} most of it in",
        r.longest.len(),
        "run",
        "began after",
        "length",
        "calls",
        "off CPU",
        "thread"
    )?;
    for run in r.longest {
        let most = run.calls.iter().max_by_key(|c| c.own_ticks);
        let most = most.map_or(String::new(), |c| {
            let part = share(c.own_ticks.into(), run.ticks().into());
            format!("{} ({part})", r.names.qualified(c.function))
        });
        writeln!(
            out,
            "{:>10} {:>14} {:>9} {:>7} {:>9}  {:<24} {most}",
            run.ix.0,
            r.scale.text((run.start - r.start).into()),
            r.scale.text(run.ticks().into()),
            grouped(run.calls.len() as u64),
            r.scale.text(run.off_cpu_ticks.into()),
            r.names.thread(run.thread),
        )?;
    }
    Ok(())
}

/// One line for all runs, one a function, one for each of the longest runs.
pub fn write_runs_json(out: &mut impl Write, r: &RunReport<'_>) -> io::Result<()> {
    let mut o = Object::new("runs", &r.scale);
    put_root(&mut o, r.names, r.root);
    put_counts(&mut o, r.counts);
    let s = r.stats;
    o.put("corrected", s.is_corrected());
    o.time("length_mean", mean(s.ticks, s.runs));
    o.distribution("length", &s.length);
    if s.is_corrected() {
        o.time("length_corrected_mean", mean(s.ticks_corrected, s.runs));
        o.distribution("length_corrected", &s.length_corrected);
    }
    o.put("off_cpu_runs", s.off_cpu_runs);
    o.time(
        "off_cpu",
        i128::try_from(s.off_cpu_ticks).unwrap_or(i128::MAX),
    );
    o.time("off_cpu_runs_length", s.off_cpu_runs_ticks);
    line(out, &o)?;
    let whole = whole(r);
    for (function, p) in parts(r) {
        let mut o = Object::new("run_function", &r.scale);
        o.put("function", r.names.function(function));
        o.put("function_id", function.0);
        o.put(
            "module",
            r.names
                .function_entry(function)
                .map(|f| r.names.module(f.module)),
        );
        o.put("runs", p.runs);
        o.put("calls", p.calls);
        o.put("share", p.own_ticks as f64 / whole.max(1) as f64);
        o.time("own_mean", mean(p.own_ticks, p.runs));
        o.distribution("own", &p.own);
        o.time("total_mean", mean(p.total_ticks, p.runs));
        o.distribution("total", &p.total);
        o.time(
            "off_cpu",
            i128::try_from(p.off_cpu_ticks).unwrap_or(i128::MAX),
        );
        line(out, &o)?;
    }
    for run in r.longest {
        let mut o = Object::new("run", &r.scale);
        o.put("run", run.ix.0);
        o.put("thread", run.thread.0);
        o.put("tid", r.names.thread_entry(run.thread).map(|t| t.tid));
        o.time("start", (run.start - r.start).into());
        o.time("length", run.ticks().into());
        o.time("off_cpu", run.off_cpu_ticks.into());
        o.put("calls", run.calls.len() as u64);
        o.put("complete", run.complete);
        line(out, &o)?;
    }
    Ok(())
}

pub(crate) fn put_root(o: &mut Object<'_>, names: &Names<'_>, root: &Root) {
    o.put("root", names.function(root.choice.function()));
    o.put("root_id", root.choice.function().0);
    o.put(
        "root_kind",
        match root.choice {
            RootChoice::Function(_) => "function",
            RootChoice::PollingLoop(_) => "polling_loop",
        },
    );
    o.put("suggested_because", root.suggested_because.clone());
}

pub(crate) fn put_counts(o: &mut Object<'_>, c: &RunCounts) {
    for (name, count) in [
        ("runs", c.runs),
        ("complete", c.complete),
        ("cut_by_loss", c.cut),
        ("left", c.left),
        ("moved", c.moved),
        ("open_at_end", c.open_at_end),
        ("idle_passes", c.idle_passes),
        ("outside_window", c.outside_window),
        ("out_of_order", c.out_of_order),
        ("overfull", c.overfull),
        ("calls", c.calls),
        ("calls_left_out", c.calls_left_out),
        ("values_left_out", c.values_left_out),
        ("calls_outside", c.calls_outside),
        ("late_ends", c.late_ends),
        ("lost", c.oddities.lost),
        ("torn", c.oddities.torn),
        ("missing", c.oddities.missing),
    ] {
        o.put(name, count);
    }
}
