//! Where a recording of slices comes from: the first thing to read on its report.
use crate::printable_text::{printable, utc};
use crate::units::ns_text;
use hopscope_event::slice::{SliceEntry, SliceEvent};
use hopscope_event::{RecordingMeta, Summary};
use std::io::{self, Write};

pub struct SliceOrigin<'a> {
    pub meta: &'a RecordingMeta,
    pub entry: &'a SliceEntry,
    pub summary: Option<&'a Summary>,
}

/// To follow how it was sliced; nothing where that was all the time.
pub fn duty_text(entry: &SliceEntry) -> String {
    match entry.duty_of {
        0 | 1 => String::new(),
        of => {
            format!(", attached for 1/{of} of the time (--duty): all counts are of that time")
        }
    }
}

/// # Errors
/// Those of `out`.
pub fn write_slice_origin(out: &mut impl Write, origin: &SliceOrigin<'_>) -> io::Result<()> {
    let SliceOrigin {
        meta,
        entry,
        summary,
    } = origin;
    let words: Vec<String> = meta.command_line.iter().map(|w| printable(w)).collect();
    writeln!(out, "command    {}", words.join(" "))?;
    let (host, kernel) = (printable(&meta.host), printable(&meta.kernel));
    let cpu = printable(&meta.cpu);
    writeln!(
        out,
        "host       {host}, {kernel}, {} × {cpu}",
        meta.cpus_online
    )?;
    writeln!(out, "started    {}", utc(meta.start.realtime_ns))?;
    let event = match &entry.event {
        SliceEvent::Time => "time".to_owned(),
        SliceEvent::Counter(name) => format!("event {}", printable(name)),
    };
    let filter = match entry.filter.as_str() {
        "" => "every packet".to_owned(),
        filter => format!("packets of \"{}\"", printable(filter)),
    };
    let part = duty_text(entry);
    let backend = printable(&entry.backend);
    writeln!(
        out,
        "slicing    {event} of {filter} through {backend} hooks{part}"
    )?;
    for hook in &entry.hooks {
        if let Some(why) = &hook.missing {
            writeln!(out, "no hook    {}: {}", hook.point, printable(why))?;
        }
    }
    match summary {
        Some(s) => {
            let took = s.end.monotonic_ns.saturating_sub(meta.start.monotonic_ns);
            let why = printable(&s.ended_because);
            writeln!(out, "ended      after {}: {why}", ns_text(took as f64))?;
            for note in &s.notes {
                writeln!(out, "note       {}", printable(note))?;
            }
        }
        None => writeln!(out, "ended      not in order")?,
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::slice::sample::entry;

    #[test]
    fn a_part_of_the_time_is_said() {
        let mut entry = entry();
        assert_eq!(duty_text(&entry), "");
        entry.duty_of = 16;
        assert!(duty_text(&entry).contains("1/16 of the time"));
    }
}
