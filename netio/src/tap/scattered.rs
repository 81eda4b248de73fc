//! One frame, one call: `writev` takes it from where it lies, `readv` puts it there.
use super::TapPort;
use crate::sys::{PARTS_MAX, TAP_HDR_LEN, received};
use crate::{Arrived, Offload, PortError, Scattered, SendStatus};
use nix::libc;
use vm_memory::VolatileSlice;

impl Scattered for TapPort {
    fn max_frame_len(&self) -> usize {
        self.max_frame_len
    }

    fn send_from(
        &mut self,
        offload: Offload,
        parts: &[VolatileSlice<'_>],
    ) -> Result<SendStatus, PortError> {
        if parts.len() > PARTS_MAX {
            return Ok(SendStatus::TooMany);
        }
        // What came before goes before.
        if !self.hand_over()? {
            return Ok(SendStatus::Full);
        }
        // The number of buffers, behind what is written here, stays 0: it is the driver's to fill.
        let mut header = [0; TAP_HDR_LEN];
        offload.write_header(&mut header);
        let len: usize = parts.iter().map(VolatileSlice::len).sum();
        let written = self.vectors.write(&self.queue, &header, parts);
        if let Err(error) = &written
            && error.raw_os_error() == Some(libc::EFAULT)
        {
            return Ok(SendStatus::Unreadable);
        }
        if !self.taken_over(written, TAP_HDR_LEN + len)? {
            return Ok(SendStatus::Full);
        }
        self.counters.sent += 1;
        self.counters.sent_bytes += len as u64;
        Ok(SendStatus::Sent)
    }

    fn receive_into(
        &mut self,
        parts: &[VolatileSlice<'_>],
        rest: &mut [u8],
    ) -> Result<Arrived, PortError> {
        let mut header = [0; TAP_HDR_LEN];
        let read = self.vectors.read(&self.queue, &mut header, parts, rest);
        let arrived = match read {
            Ok(len) => Arrived::Frame {
                len: len.saturating_sub(TAP_HDR_LEN),
                offload: received(&header),
            },
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => return Ok(Arrived::Nothing),
                // The kernel took the frame from its queue, and it is gone.
                Some(libc::EFAULT) => Arrived::Unwritable,
                _ => return Err(PortError::device(&self.name, "receiving", error)),
            },
        };
        self.counters.received += 1;
        if let Arrived::Frame { len, .. } = arrived {
            self.counters.received_bytes += len as u64;
        }
        Ok(arrived)
    }
}
