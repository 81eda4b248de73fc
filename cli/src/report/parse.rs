//! Thresholds and places, as the command line takes them.
use hopscope_analyze::parse_span_ns;
use hopscope_analyze::tail::Threshold;
use hopscope_read::Around;

/// `p99.9` or a span of time.
pub(super) fn tail(text: &str) -> Result<(Threshold, String), String> {
    let wrong = || format!("{text:?}: write a percentile (p99.9) or a time (500us)");
    let threshold = match text.strip_prefix('p') {
        Some(percent) => {
            let percent: f64 = percent.parse().map_err(|_| wrong())?;
            if !(percent > 0.0 && percent < 100.0) {
                return Err(format!("{text:?}: a percentile lies between p0 and p100"));
            }
            Threshold::Percentile(percent)
        }
        None => Threshold::Ns(parse_span_ns(text).map_err(|_| wrong())?.0),
    };
    Ok((threshold, text.to_owned()))
}

/// `1.5s`, `20ms`; `packet:17`, or `packet:2/17` of stream 2.
pub(super) fn around(text: &str) -> Result<Around, String> {
    let Some(packet) = text.strip_prefix("packet:") else {
        let time = parse_span_ns(text);
        return time
            .map(Around::Time)
            .map_err(|e| format!("{e}; or packet:NUMBER"));
    };
    let wrong = || format!("{packet:?} is no packet: packet:NUMBER or packet:STREAM/NUMBER");
    let (stream, seq) = match packet.split_once('/') {
        Some((stream, seq)) => (Some(stream.parse().map_err(|_| wrong())?), seq),
        None => (None, packet),
    };
    let seq = seq.parse().map_err(|_| wrong())?;
    Ok(Around::Packet { stream, seq })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::Ns;

    #[test]
    fn places() {
        let packet = |stream, seq| Ok(Around::Packet { stream, seq });
        assert_eq!(around("packet:17"), packet(None, 17));
        assert_eq!(around("packet:2/17"), packet(Some(2), 17));
        assert_eq!(around("20ms"), Ok(Around::Time(Ns(20_000_000))));
        for wrong in ["packet:", "packet:x", "packet:1/", "soon"] {
            assert!(around(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentiles_and_times() {
        let parsed = |text| tail(text).map(|(t, _)| t);
        assert_eq!(parsed("p99.9"), Ok(Threshold::Percentile(99.9)));
        assert_eq!(parsed("500us"), Ok(Threshold::Ns(500_000)));
        for bad in ["p", "p100", "p0", "99.9%", "", "pNaN", "fast"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
