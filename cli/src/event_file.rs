//! A server's recording of its own events, at its end.
use hopscope_serving::events::{EventWriter, Written};
use serde_json::json;
use std::io::{self, Write};

/// After what was recorded is over, in whatever way: `failed` says why, if it did not end as it should.
pub(crate) fn finish(
    writer: Option<EventWriter>,
    failed: Option<String>,
    as_json: bool,
) -> anyhow::Result<()> {
    let Some(writer) = writer else {
        return Ok(());
    };
    let Written { records, lost } = writer.finish(failed.as_deref().unwrap_or("stopped"))?;
    if as_json {
        let line = json!({ "type": "recorded", "schema": 1, "records": records, "lost": lost });
        writeln!(io::stdout(), "{line}")?;
    } else {
        crate::status::say!("{records} events recorded, {lost} lost");
    }
    Ok(())
}
