//! Numbers with their units.
use hopscope_analyze::Quantile;
use hopscope_event::TscFrequency;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeUnit {
    #[default]
    Ns,
    Tsc,
}

/// From ticks to what is printed.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub unit: TimeUnit,
    frequency: TscFrequency,
}

impl Scale {
    pub fn new(unit: TimeUnit, frequency: TscFrequency) -> Scale {
        Scale { unit, frequency }
    }

    /// `ns` or `tsc`: the end of field names.
    pub fn suffix(&self) -> &'static str {
        match self.unit {
            TimeUnit::Ns => "ns",
            TimeUnit::Tsc => "tsc",
        }
    }

    /// In the unit itself: nanoseconds to a tenth, ticks as they are.
    pub fn number(&self, ticks: i128) -> f64 {
        match self.unit {
            TimeUnit::Ns => (self.ns(ticks) * 10.0).round() / 10.0,
            TimeUnit::Tsc => ticks as f64,
        }
    }

    pub(crate) fn ns(&self, ticks: i128) -> f64 {
        ticks as f64 * 1e9 / self.frequency.0.max(1) as f64
    }

    pub fn text(&self, ticks: i128) -> String {
        match self.unit {
            TimeUnit::Ns => ns_text(self.ns(ticks)),
            TimeUnit::Tsc => format!("{} tsc", grouped(ticks)),
        }
    }

    pub fn quantile(&self, quantile: Quantile) -> String {
        match quantile {
            Quantile::Empty => "-".to_owned(),
            Quantile::Negative => "negative".to_owned(),
            Quantile::Ticks(ticks) => self.text(i128::from(ticks)),
        }
    }
}

/// Three or four significant digits and the unit that fits.
pub(crate) fn ns_text(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size < 999.5 => (ns, "ns"),
        size if size < 999.5e3 => (ns / 1e3, "µs"),
        size if size < 999.5e6 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = match value.abs() {
        size if size < 9.995 && unit != "ns" => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// With a comma between thousands.
pub(crate) fn grouped(value: impl Into<i128>) -> String {
    let value = value.into();
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    if value < 0 {
        text.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Part of a whole; `-` when there is no whole to be a part of.
pub(crate) fn share(part: i128, whole: i128) -> String {
    if whole > 0 {
        format!("{:.1} %", part as f64 * 100.0 / whole as f64)
    } else {
        "-".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_follows_size() {
        let texts = [0.0, 21.94, 123.4, 999.6, 12_345.0, 999_600.0, 1.5e9, -42.0].map(ns_text);
        let expected = [
            "0.0 ns", "21.9 ns", "123 ns", "1.00 µs", "12.3 µs", "1.00 ms", "1.50 s", "-42.0 ns",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn thousands() {
        let texts = [0i64, 999, 1000, -1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "-1,234,567"]);
    }

    #[test]
    fn ticks_keep_their_unit() {
        let scale = Scale::new(TimeUnit::Tsc, TscFrequency(2_000_000_000));
        assert_eq!(scale.text(1234), "1,234 tsc");
        let scale = Scale::new(TimeUnit::Ns, TscFrequency(2_000_000_000));
        assert_eq!(
            (scale.text(47), scale.number(47)),
            ("23.5 ns".to_owned(), 23.5)
        );
    }
}
