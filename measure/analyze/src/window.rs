//! The selected time span of a recording.
use hopscope_event::{Ns, Tsc, TscFrequency};
use thiserror::Error;

/// Half-open span of the recording. A call is in it when its entry is; so each entry, with
/// whatever became of it, is counted in exactly one of two adjoining windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    pub from: Option<Tsc>,
    pub to: Option<Tsc>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum WindowError {
    #[error("{0:?} is not a time span; write a number and a unit: 1.5s, 20ms, 300us, 50ns, 2m, 1h")]
    Syntax(String),
    #[error("{0:?} is beyond the longest span of 10,000,000 s")]
    TooLong(String),
    #[error("the window is empty: --from is not before --to")]
    Empty,
}

/// Name, in ns. Those that end like another come first.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses `1.5s`, `20ms`, `300us` (or `µs`), `50ns`, `2m` (or `min`), `1h`; a bare number is seconds. Every time on the
/// command line is read by this.
pub fn parse_span_ns(text: &str) -> Result<Ns, WindowError> {
    let syntax = || WindowError::Syntax(text.to_owned());
    let (number, unit_ns) = UNITS
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, *ns)))
        .unwrap_or((text, 1_000_000_000));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let only_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let written = !whole.is_empty() || !fraction.is_empty();
    if !(written && only_digits(whole) && only_digits(fraction)) {
        return Err(syntax());
    }
    if whole.len() > 17 {
        return Err(WindowError::TooLong(text.to_owned()));
    }
    let mut ns = whole.parse::<u128>().unwrap_or(0) * u128::from(unit_ns);
    // No unit is 10^17 ns: later digits are less than one.
    let mut place = 1u128;
    let mut parts = 0u128;
    for digit in fraction.bytes().take(17) {
        parts = parts * 10 + u128::from(digit - b'0');
        place *= 10;
    }
    ns += parts * u128::from(unit_ns) / place;
    match u64::try_from(ns) {
        Ok(ns) if ns <= 10_000_000 * 1_000_000_000 => Ok(Ns(ns)),
        _ => Err(WindowError::TooLong(text.to_owned())),
    }
}

impl Window {
    /// From spans relative to the start of the recording.
    pub fn relative(
        start: Tsc,
        frequency: TscFrequency,
        from: Option<Ns>,
        to: Option<Ns>,
    ) -> Result<Window, WindowError> {
        if let (Some(from), Some(to)) = (from, to)
            && from >= to
        {
            return Err(WindowError::Empty);
        }
        let at = |ns: Ns| start + frequency.ticks(ns);
        Ok(Window {
            from: from.map(at),
            to: to.map(at),
        })
    }

    #[inline]
    pub fn contains(&self, tsc: u64) -> bool {
        self.from.is_none_or(|from| tsc >= from.0) && self.to.is_none_or(|to| tsc < to.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(parse_span_ns("1.5s"), Ok(Ns(1_500_000_000)));
        assert_eq!(parse_span_ns("20ms"), Ok(Ns(20_000_000)));
        assert_eq!(parse_span_ns(".5us"), Ok(Ns(500)));
        assert_eq!(parse_span_ns("3µs"), Ok(Ns(3_000)));
        assert_eq!(parse_span_ns("7"), Ok(Ns(7_000_000_000)));
        assert_eq!(parse_span_ns("9ns"), Ok(Ns(9)));
        assert_eq!(parse_span_ns("2m"), parse_span_ns("2min"));
        assert_eq!(parse_span_ns("1.5h"), Ok(Ns(5_400_000_000_000)));
        for bad in ["", "s", ".s", "-1s", "1.2.3s", "1d", "1e3s", "1 s"] {
            assert_eq!(
                parse_span_ns(bad),
                Err(WindowError::Syntax(bad.into())),
                "{bad}"
            );
        }
        for long in ["10000001s", "99999999999999999999s"] {
            assert_eq!(parse_span_ns(long), Err(WindowError::TooLong(long.into())));
        }
    }

    #[test]
    fn window_is_half_open() {
        let w = Window::relative(
            Tsc(1000),
            TscFrequency(1_000_000_000),
            Some(Ns(10)),
            Some(Ns(20)),
        );
        let w = w.expect("10 is before 20");
        assert!(!w.contains(1009) && w.contains(1010) && w.contains(1019) && !w.contains(1020));
        let empty = Window::relative(Tsc(0), TscFrequency(1), Some(Ns(5)), Some(Ns(5)));
        assert_eq!(empty, Err(WindowError::Empty));
    }
}
