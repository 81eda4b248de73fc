//! The text configuration of regions: a line each, `name = from .. to`, `#` begins a comment.
use hopscope_event::slice::{Point, RegionEntry};
use std::num::NonZeroUsize;

/// Presets, in the same notation as a user's file.
pub const TX: &str = include_str!("regions/tx.conf");
pub const RX: &str = include_str!("regions/rx.conf");
pub const BOTH: &str = include_str!("regions/both.conf");
pub const MIN: &str = include_str!("regions/min.conf");
pub const SEVEN: &str = include_str!("regions/seven.conf");

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    #[error("line {line}: expected `name = from .. to`, found `{text}`")]
    Shape { line: NonZeroUsize, text: String },
    #[error("line {line}: no point is called `{name}`; `hopscope slice -L` lists them")]
    Unknown { line: NonZeroUsize, name: String },
    #[error("line {line}: `{from}` does not come before `{to}` on a packet's way")]
    Backwards {
        line: NonZeroUsize,
        from: Point,
        to: Point,
    },
    #[error("line {line}: a region is called `{name}` already")]
    Twice { line: NonZeroUsize, name: String },
    #[error("there is no region in it")]
    Empty,
}

/// The regions of a preset: `tx`, `rx`, `both`, `min` or `seven`.
pub fn preset(name: &str) -> Option<Vec<RegionEntry>> {
    let text = match name {
        "tx" => TX.to_owned(),
        "rx" => RX.to_owned(),
        "both" => BOTH.to_owned(),
        "min" => MIN.to_owned(),
        "seven" => SEVEN.to_owned(),
        _ => return None,
    };
    parse(&text).ok()
}

/// # Errors
/// With the number of the first line that is not understood.
pub fn parse(text: &str) -> Result<Vec<RegionEntry>, RegionError> {
    let mut regions: Vec<RegionEntry> = Vec::new();
    for (at, whole) in text.lines().enumerate() {
        let line = NonZeroUsize::MIN.saturating_add(at);
        let bare = whole.split('#').next().unwrap_or("").trim();
        if bare.is_empty() {
            continue;
        }
        let shape = || RegionError::Shape {
            line,
            text: whole.trim().to_owned(),
        };
        let (name, points) = bare.split_once('=').ok_or_else(shape)?;
        let (from, to) = points.split_once("..").ok_or_else(shape)?;
        let (name, from, to) = (name.trim(), from.trim(), to.trim());
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(shape());
        }
        let point = |name: &str| {
            Point::from_name(name).ok_or_else(|| RegionError::Unknown {
                line,
                name: name.to_owned(),
            })
        };
        let (from, to) = (point(from)?, point(to)?);
        if from >= to {
            return Err(RegionError::Backwards { line, from, to });
        }
        if regions.iter().any(|region| region.name == name) {
            return Err(RegionError::Twice {
                line,
                name: name.to_owned(),
            });
        }
        regions.push(RegionEntry {
            name: name.to_owned(),
            from,
            to,
        });
    }
    if regions.is_empty() {
        Err(RegionError::Empty)
    } else {
        Ok(regions)
    }
}

/// The points that bound `regions`, in the order of a packet's way.
pub fn points(regions: &[RegionEntry]) -> Vec<Point> {
    let mut points: Vec<Point> = regions.iter().flat_map(|r| [r.from, r.to]).collect();
    points.sort_unstable();
    points.dedup();
    points
}

/// `asked`, and the points at which records of packets begin and end, and without which one that is asked for is never
/// reached: a record that does not end is given up, or takes the freeing of a packet that was read for a drop.
pub fn with_ends(asked: &[Point]) -> Vec<Point> {
    use Point::{
        RxCopied, RxCore, RxDriver, RxIp, RxSchedIn, RxSocket, RxWaking, TxDriver, TxIpOut,
        TxSyscall, TxTransport,
    };
    let mut points = asked.to_vec();
    let is_tx = asked.iter().any(|point| point.is_tx());
    let is_rx = asked.iter().any(|point| !point.is_tx());
    if is_tx {
        points.extend([TxIpOut, TxDriver]);
    }
    // The call that wrote TCP's data is known by what its transport was given.
    if asked.contains(&TxSyscall) {
        points.push(TxTransport);
    }
    if is_rx {
        points.extend([RxIp, RxCopied]);
    }
    if is_rx && !is_tx && !asked.contains(&RxCore) {
        points.push(RxDriver);
    }
    // A thread runs for the packet that woke it, and is woken by the socket.
    if asked.contains(&RxSchedIn) {
        points.push(RxWaking);
    }
    if asked.contains(&RxSchedIn) || asked.contains(&RxWaking) {
        points.push(RxSocket);
    }
    points.sort_unstable();
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound() {
        for (name, slices) in [
            ("tx", 7),
            ("rx", 11),
            ("both", 20),
            ("min", 3),
            ("seven", 7),
        ] {
            assert_eq!(preset(name).map(|r| r.len()), Some(slices), "{name}");
        }
        assert_eq!(preset("most"), None);
    }

    #[test]
    fn errors_name_the_line() {
        let line = |text| parse(text).unwrap_err().to_string();
        assert!(line("# x\n\na = tx_done").starts_with("line 3: expected"));
        assert!(line("a = tx_done .. nowhere").starts_with("line 1: no point"));
        assert!(line("a = tx_done .. tx_done").starts_with("line 1: `tx_done` does not"));
        assert!(
            line("a = tx_driver .. tx_done\na = rx_ip .. rx_copy").starts_with("line 2: a region")
        );
        assert_eq!(line("# nothing"), "there is no region in it");
    }

    #[test]
    fn presets_have_the_ends_of_records() {
        for name in ["tx", "rx", "both", "min", "seven"] {
            let asked = points(&preset(name).unwrap());
            assert_eq!(with_ends(&asked), asked, "{name}");
        }
    }

    #[test]
    fn ends_are_added_to_what_is_asked() {
        use Point::*;
        let of = |text| with_ends(&points(&parse(text).unwrap()));
        assert_eq!(
            of("wire = tx_driver .. rx_core"),
            [TxIpOut, TxDriver, RxCore, RxIp, RxCopied]
        );
        assert_eq!(
            of("queue = tx_qdisc_enqueue .. tx_qdisc_dequeue"),
            [TxIpOut, TxQdiscEnqueue, TxQdiscDequeue, TxDriver]
        );
        assert_eq!(
            of("wait = rx_waking .. rx_sched_in"),
            [RxDriver, RxIp, RxSocket, RxWaking, RxSchedIn, RxCopied]
        );
    }

    #[test]
    fn points_are_those_of_the_regions_once() {
        let regions = preset("min").unwrap();
        let points = points(&regions);
        assert_eq!(points.len(), 4);
        assert!(points.is_sorted());
    }
}
