//! What happens, and what happened.
use crate::json::tagged;
use hopscope_vnet::serve::{Notice, ServeCounts};
use serde_json::json;
use std::io::{self, Write};

/// Status is stderr's, data stdout's.
pub(super) fn notice(notice: &Notice<'_>, as_json: bool) -> io::Result<()> {
    let (what, text) = notice.told();
    if as_json {
        let line = json!({ "type": "event", "schema": 1, "what": what, "text": text });
        writeln!(io::stdout(), "{line}")
    } else {
        crate::status::say!("{text}");
        Ok(())
    }
}

pub(super) fn summary(counts: &ServeCounts, as_json: bool) -> anyhow::Result<()> {
    let mut out = io::stdout();
    if as_json {
        writeln!(out, "{}", tagged("summary", counts)?)?
    } else {
        write!(out, "{counts}")?
    }
    Ok(())
}
