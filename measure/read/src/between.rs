//! Packets without stamps: their time from one function that captured their numbers to another.
use crate::error::{Context, Result, refuse};
use crate::options::ReportOptions;
use crate::runs::{RunSource, function};
use hopscope_analyze::Runs;
use hopscope_analyze::join::{Joined, PacketId, Place, Seen, Sightings};
use hopscope_event::FunctionId;
use hopscope_report::{Between, Names, Recording};
use hopscope_trace::TraceReader;

pub(crate) struct WithoutStamps {
    pub(crate) joined: Joined,
    pub(crate) runs: Runs,
    pub(crate) between: Between,
}

/// `None` when there are stamps, or nothing that could stand for them.
///
/// # Errors
/// What is missing for a latency without stamps, when one was asked for.
pub(crate) fn without_stamps(
    options: &ReportOptions,
    source: &RunSource<'_>,
    recording: &Recording<'_>,
    stamps: &TraceReader,
    id: Option<&(PacketId, String)>,
) -> Result<Option<WithoutStamps>> {
    let stamped = options.packets.is_some() || stamps.stamp_heads().any(|head| head.rows > 0);
    let asked = match &options.between {
        Some(_) if stamped => {
            refuse!(
                "--between is for packets without stamps; these have some, and latency counts from them"
            )
        }
        Some(text) => Some(named(source, text)?),
        None => None,
    };
    let (id, name) = match id {
        Some(id) if !stamped => id,
        None if asked.is_some() => refuse!(
            "--between: the recording holds no captured number of a packet (none has seq in its \
             name); say which capture it is: --packet-id NAME"
        ),
        _ => return Ok(None),
    };
    if options.tail.is_none() && options.by_flow {
        refuse!(
            "captured numbers do not say a packet's flow; --by flow needs the stamps of \
               hopscope load packets: --packets FILE"
        );
    }
    let mut sightings = Sightings::new(id.clone())?;
    let runs = source.each(|run, runs| {
        let taken = sightings.run(&run);
        taken.context("narrow it down with --from and --to")?;
        runs.recycle(run);
        Ok(())
    })?;
    let names = Names::new(recording);
    let missing = || format!("no latency without stamps from {name}");
    let seen = sightings.finish(asked).with_context(missing)?;
    let boundary = format!(
        "from {} to {}, where {name} was captured; the packets have no stamps",
        place_text(&names, seen.from),
        place_text(&names, seen.to)
    );
    let between = Between {
        boundary,
        notes: notes(&seen, name),
    };
    Ok(Some(WithoutStamps {
        joined: seen.joined,
        runs,
        between,
    }))
}

fn named(source: &RunSource<'_>, text: &str) -> Result<(FunctionId, FunctionId)> {
    let Some((from, to)) = text.split_once(',') else {
        refuse!("--between {text}: write FUNCTION,FUNCTION");
    };
    let tables = source.selection.tables();
    let one = |name: &str| function(tables, name).context("--between");
    let (from, to) = (one(from)?, one(to)?);
    if from == to {
        refuse!("--between {text}: no time passes from a function to itself; name two");
    }
    Ok((from, to))
}

fn place_text(names: &Names<'_>, place: Place) -> String {
    let end = if place.at_return { "exit" } else { "entry" };
    format!("the {end} of {}", names.qualified(place.function))
}

fn notes(seen: &Seen, name: &str) -> Vec<(u64, String)> {
    let all = [
        (
            seen.between,
            format!("times {name} was captured between the two, or again at the second"),
        ),
        (
            seen.same_run,
            "packets had the number of another packet of the same run: TAKEN FOR ONE".to_owned(),
        ),
        (
            seen.only_at_to,
            "numbers were seen at the second function only, or there first: EXCLUDED".to_owned(),
        ),
    ];
    all.into_iter().filter(|(n, _)| *n > 0).collect()
}
