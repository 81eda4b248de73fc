//! What probes do to a program's speed, in words.
use hopscope_probe::recorder::overhead::SLOWDOWN_MAX_PERCENT;

/// Above what can be told, the measured threads do little but make measured calls.
pub(crate) fn text(percent: Option<f64>) -> String {
    match percent {
        None => "slowdown unknown".to_owned(),
        Some(percent) if percent >= SLOWDOWN_MAX_PERCENT => format!(
            "estimated slowdown over {SLOWDOWN_MAX_PERCENT:.0} %: probes are nearly all that runs"
        ),
        Some(percent) => format!("estimated slowdown {percent:.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_that_cannot_be_told_is_not_made_up() {
        assert_eq!(text(None), "slowdown unknown");
        assert_eq!(text(Some(12.34)), "estimated slowdown 12.3 %");
        let most = text(Some(SLOWDOWN_MAX_PERCENT));
        assert!(most.starts_with("estimated slowdown over 900 %"), "{most}");
    }
}
