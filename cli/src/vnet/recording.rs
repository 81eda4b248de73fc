//! What happens at an end of queues, in a recording: of `serve` and of `drive`.
use crate::host::meta;
use hopscope_serving::events::{EventFile, Events};
use hopscope_vnet::events::{End, create};
use std::path::Path;

/// Nothing without a file. `pairs`: of queues.
pub(super) fn begin(
    path: Option<&Path>,
    end: End,
    pairs: u16,
) -> anyhow::Result<(Option<Events>, Option<EventFile>)> {
    let Some(path) = path else {
        return Ok((None, None));
    };
    let name = |n| {
        let end = match end {
            End::Back => "back end",
            End::Front => "front end",
        };
        format!("{end} {}", queue_name(n))
    };
    let (events, file) = create(path, &meta(), end, 2 * usize::from(pairs), &name)?;
    Ok((Some(events), Some(file)))
}

/// As virtio numbers them, seen from the guest.
fn queue_name(n: usize) -> String {
    let direction = if n.is_multiple_of(2) { "rx" } else { "tx" };
    format!("{direction} {}", n / 2)
}
