//! Words that more than one report has: dates, and names from elsewhere.

/// `2026-11-21 05:07:09 UTC` from nanoseconds since 1970 (proleptic Gregorian, no leap seconds).
pub fn utc(realtime_ns: u64) -> String {
    let seconds = realtime_ns / 1_000_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Years from March on, in cycles of 400 years: a leap day then ends its year.
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + carry;
    let (h, m, s) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

/// Names come from foreign files: they must not steer a terminal.
pub fn printable(text: &str) -> String {
    hopscope_event::Printable::new(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates() {
        let at = |s: u64| utc(s * 1_000_000_000);
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_735_689_599), "2024-12-31 23:59:59 UTC");
        assert_eq!(at(1_740_787_199), "2025-02-28 23:59:59 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }
}
