//! `--replay`: the frames of a capture, read before the first is sent.
use super::PacketsError;
use super::plan::Traffic;
use super::replay::Capture;
use hopscope_netio::capture::CaptureReader;
use std::path::Path;
use std::sync::Arc;

/// As `format!` takes it.
macro_rules! refuse {
    ($($words:tt)*) => { return Err(PacketsError::Captured(format!($($words)*))) };
}

/// Frames are held in memory: sending must not wait for a disk.
const MOST_BYTES: usize = 1 << 30;

/// # Errors
/// It cannot be read, or not be sent as it is.
pub fn read(path: &Path, max_frame_len: usize) -> Result<Traffic, PacketsError> {
    let mut reader = CaptureReader::open(path)?;
    let (mut frames, mut times, mut bytes) = (Vec::<Box<[u8]>>::new(), Vec::new(), 0usize);
    let name = path.display();
    while let Some(frame) = reader.next_frame()? {
        let number = frames.len() + 1;
        if frame.bytes.len() < frame.wire_len {
            refuse!(
                "frame {number} of {name} was cut to {} of {} bytes when it was captured: capture with a larger snap length",
                frame.bytes.len(),
                frame.wire_len
            );
        }
        if frame.bytes.len() > max_frame_len {
            refuse!(
                "frame {number} of {name} has {} bytes, the port takes up to {max_frame_len}: raise the MTU, or capture without offloads",
                frame.bytes.len()
            );
        }
        bytes += frame.bytes.len();
        if bytes > MOST_BYTES {
            refuse!(
                "{name} holds more than {} MiB of frames: cut it with editcap -c",
                MOST_BYTES >> 20
            );
        }
        frames.push(frame.bytes.into());
        times.push(frame.time_ns);
    }
    let Some(offsets) = offsets(&times) else {
        refuse!("timestamps of {name} do not increase: give --rate");
    };
    let Some(capture) = Capture::new(frames) else {
        refuse!("{name} holds no frames");
    };
    Ok(Traffic::Replay {
        capture: Arc::new(capture),
        offsets_ns: offsets.into(),
    })
}

/// From the first frame on. Frames captured on several queues may be out of order by a little:
/// then a frame is due with the one before it. `None` where a frame has no time.
fn offsets(times: &[Option<u64>]) -> Option<Vec<u64>> {
    let first = times.first().copied().flatten().unwrap_or(0);
    let mut latest = 0;
    let offset = |time: &Option<u64>| {
        latest = latest.max((*time)?.saturating_sub(first));
        Some(latest)
    };
    times.iter().map(offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_first_and_never_fall() {
        let times = [Some(1_000), Some(1_500), Some(1_400), Some(2_000)];
        assert_eq!(offsets(&times), Some(vec![0, 500, 500, 1_000]));
        assert_eq!(offsets(&[Some(1), None]), None);
        assert_eq!(offsets(&[]), Some(vec![]));
    }
}
