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
    match regions.is_empty() {
        true => Err(RegionError::Empty),
        false => Ok(regions),
    }
}

/// The points that bound `regions`, in the order of a packet's way.
pub fn points(regions: &[RegionEntry]) -> Vec<Point> {
    let mut points: Vec<Point> = regions.iter().flat_map(|r| [r.from, r.to]).collect();
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
            ("rx", 10),
            ("both", 18),
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
    fn points_are_those_of_the_regions_once() {
        let regions = preset("min").unwrap();
        let points = points(&regions);
        assert_eq!(points.len(), 4);
        assert!(points.is_sorted());
    }
}
