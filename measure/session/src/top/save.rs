//! A snapshot as a file: every function, the last interval and since the start.
use super::live::{Numbers, Snapshot};
use crate::error::{Context, Result, refuse};
use crate::output::OWNER_ONLY;
use hopscope_analyze::Quantile;
use hopscope_report::Scale;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Writes it to a new file in the current directory, and gives its name.
pub fn save(snapshot: &Snapshot, scale: &Scale, corrected: bool) -> Result<PathBuf> {
    let (path, file) = fresh()?;
    let mut out = BufWriter::new(file);
    write(&mut out, snapshot, scale, corrected)
        .and_then(|()| out.flush())
        .with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// The first `hopscope-top-N.csv` that does not exist: nothing is written over.
fn fresh() -> Result<(PathBuf, File)> {
    for n in 1..10_000 {
        let path = PathBuf::from(format!("hopscope-top-{n}.csv"));
        let new = File::options()
            .write(true)
            .create_new(true)
            .mode(OWNER_ONLY)
            .open(&path);
        match new {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e).with_context(|| format!("creating {}", path.display())),
        }
    }
    refuse!("hopscope-top-1.csv to hopscope-top-9999.csv all exist")
}

fn write(
    out: &mut impl Write,
    s: &Snapshot,
    scale: &Scale,
    corrected: bool,
) -> std::io::Result<()> {
    let times = if corrected { "corrected" } else { "raw" };
    writeln!(
        out,
        "module,function,times,\
         interval_s,interval_calls,interval_self_ns,interval_p50_ns,interval_p99_ns,interval_max_ns,\
         whole_s,whole_calls,whole_self_ns,whole_p50_ns,whole_p99_ns,whole_max_ns,\
         lost_records,torn_records,calls_unmeasured,calls_moved"
    )?;
    for (name, (now, whole)) in s.names.iter().zip(s.now.iter().zip(&s.whole)) {
        writeln!(
            out,
            "{},{},{times},{:.3},{},{:.3},{},{},{},{},{}",
            quoted(&name.module),
            quoted(&name.function),
            s.span_s,
            numbers(now, scale),
            s.since_start_s,
            numbers(whole, scale),
            s.lost_whole,
            s.torn_whole,
            s.calls_unmeasured,
            s.moved_whole
        )?;
    }
    Ok(())
}

/// An empty field where there is no such value.
fn numbers(n: &Numbers, scale: &Scale) -> String {
    let ns = |quantile| match quantile {
        Quantile::Ticks(ticks) => format!("{:.1}", scale.number(i128::from(ticks))),
        Quantile::Empty | Quantile::Negative => String::new(),
    };
    format!(
        "{},{:.1},{},{},{}",
        n.calls,
        scale.number(n.own_ticks),
        ns(n.p50),
        ns(n.p99),
        ns(n.max)
    )
}

/// RFC 4180; names of C++ functions hold commas.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::super::names::Name;
    use super::*;
    use hopscope_event::TscFrequency;
    use hopscope_report::TimeUnit;

    #[test]
    fn one_line_a_function_with_as_many_fields_as_titles() {
        let name = Name {
            function: "f(int, char)".into(),
            module: "a\"b".into(),
        };
        let numbers = Numbers {
            calls: 2,
            own_ticks: 2_000,
            p50: Quantile::Ticks(1_000),
            ..Numbers::default()
        };
        let snapshot = Snapshot {
            now: vec![Numbers::default()],
            whole: vec![numbers],
            names: vec![name].into(),
            ..Snapshot::default()
        };
        let scale = Scale::new(TimeUnit::Ns, TscFrequency(2_000_000_000));
        let mut out = Vec::new();
        write(&mut out, &snapshot, &scale, true).expect("to memory");
        let text = String::from_utf8(out).expect("text");
        let (titles, line) = text.trim_end().split_once('\n').expect("two lines");
        assert!(
            line.starts_with(
                "\"a\"\"b\",\"f(int, char)\",corrected,0.000,0,0.0,,,,0.000,2,1000.0,500.0,,,"
            ),
            "{line}"
        );
        let fields = line.replace("f(int, char)", "f").matches(',').count();
        assert_eq!(fields, titles.matches(',').count());
    }
}
