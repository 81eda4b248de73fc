//! What a call counted, as arguments of its slice.
use super::Note;
use crate::printable_text::printable;
use hopscope_analyze::CallCounts;
use hopscope_event::CounterEntry;

/// Of the arguments of one counter.
#[derive(Debug)]
pub(super) struct Names {
    total: String,
    own: String,
    left_out: String,
}

pub(super) fn names(counters: &[CounterEntry]) -> Vec<Names> {
    let names = |counter: &CounterEntry| {
        let name = printable(&counter.name);
        let state = match counter.cost {
            Some(_) => "corrected",
            None => "raw",
        };
        Names {
            total: format!("{name}_total_{state}"),
            own: format!("{name}_own_{state}"),
            left_out: format!("{name}_left_out"),
        }
    };
    counters.iter().map(names).collect()
}

pub(super) fn notes<'a>(
    notes: &mut Vec<(&'a str, Note<'a>)>,
    names: &'a [Names],
    counters: &[CounterEntry],
    counted: &CallCounts,
) {
    let narrow = |n: i128| Note::Signed(n.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    for (counter, names) in counters.iter().zip(names) {
        let Some(Some(count)) = counted.get(usize::from(counter.number)) else {
            continue;
        };
        let cost = counter.cost.as_ref();
        let total = count.total.map(i128::from);
        let corrected = count.total_corrected(cost).ok().flatten();
        match corrected.map_or(total, Ok) {
            Ok(total) => notes.push((&names.total, narrow(total))),
            Err(why) => notes.push((&names.left_out, Note::Text(why.name()))),
        }
        let own = count.own().map(i128::from);
        let corrected = count.own_corrected(cost).ok().flatten();
        match (corrected.map_or(own, Ok), total) {
            (Ok(own), _) => notes.push((&names.own, narrow(own))),
            (Err(why), Ok(_)) => notes.push((&names.left_out, Note::Text(why.name()))),
            (Err(_), Err(_)) => {}
        }
    }
}
