//! Numbers with units, as the command line takes them.
use hopscope_analyze::{WindowError, parse_span_ns};
use std::time::Duration;

/// `500ms`, `5s`, `2m`; a bare number is seconds.
pub fn parse_time(text: &str) -> Result<Duration, WindowError> {
    parse_span_ns(text).map(|ns| Duration::from_nanos(ns.0))
}

/// Bytes: `64`, `16K`, `1M`; K and KiB are 1024.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale: usize = match &text[digits.len()..] {
        "" | "B" => 1,
        "k" | "K" | "KiB" => 1 << 10,
        "m" | "M" | "MiB" => 1 << 20,
        other => return Err(format!("unknown unit {other:?}; use K or M")),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| format!("{digits:?} is not a whole number"))?;
    number.checked_mul(scale).ok_or("too large".into())
}

/// A size of a message, from 1 byte to 16 MiB.
pub fn parse_message_size(text: &str) -> Result<usize, String> {
    let size = parse_size(text)?;
    if (1..=16 << 20).contains(&size) {
        Ok(size)
    } else {
        Err("must be from 1 to 16M".into())
    }
}

/// A count or a rate: `2000`, `10k`, `1.5M`; k and M are decimal.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        other => return Err(format!("unknown unit {other:?}; use k or M")),
    };
    let rate = number * scale;
    if rate.is_finite() && rate > 0.0 {
        Ok(rate)
    } else {
        Err("must be above 0".into())
    }
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits.parse();
    let number = number.map_err(|_| format!("{digits:?} is not a number"))?;
    Ok((number, &text[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(parse_time("5"), Ok(Duration::from_secs(5)));
        assert_eq!(parse_time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_time("300ns"), Ok(Duration::from_nanos(300)));
        for wrong in ["5 parsecs", "-1s", "", "s"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("64"), Ok(64));
        assert_eq!(parse_size("128K"), Ok(128 << 10));
        for wrong in ["", "K", "1.5K", "3G", "-1", "99999999999999999999"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(parse_rate("10k"), Ok(10_000.0));
        assert_eq!(parse_rate("1.5M"), Ok(1_500_000.0));
        for wrong in ["0", "-5", "inf", "nan", "", "5 pps"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
