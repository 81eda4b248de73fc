//! A packet port that tests fill, empty and stop up.
use hopscope_netio::{
    Capabilities, Counters, Fill, Frame, Offload, Outgoing, PacketIo, PortError, Visit,
};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const LONGEST: usize = 2000;

#[derive(Default)]
pub(super) struct Inside {
    pub(super) coming: VecDeque<(Vec<u8>, Offload)>,
    pub(super) went: Vec<Vec<u8>>,
    /// Frames that it still takes.
    pub(super) room: usize,
    /// Calls of it since a test last looked.
    pub(super) calls: usize,
    counters: Counters,
}

pub(super) struct Port {
    inside: Arc<Mutex<Inside>>,
    /// Always ready for both.
    ready: EventFd,
}

#[derive(Clone, Default)]
pub(super) struct Handle(Arc<Mutex<Inside>>);

impl Handle {
    pub(super) fn port(&self) -> Port {
        let ready = EventFd::from_value_and_flags(1, EfdFlags::EFD_NONBLOCK).expect("an eventfd");
        Port {
            inside: self.0.clone(),
            ready,
        }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Inside) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PacketIo for Port {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: LONGEST,
            offload: true,
        }
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ready.as_fd())
    }

    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.calls += 1;
        for count in 0..max {
            let Some((bytes, offload)) = inside.coming.pop_front() else {
                return Ok(count);
            };
            inside.counters.received += 1;
            inside.counters.received_bytes += bytes.len() as u64;
            visit(Frame {
                bytes: &bytes,
                wire_len: bytes.len(),
                received: hopscope_netio::clock::tsc_now(),
                offload,
            });
        }
        Ok(max)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside.calls += 1;
        let mut slot = vec![0xa5; LONGEST];
        for done in 0..count {
            if inside.room == 0 {
                return Ok(done);
            }
            let Outgoing { len, .. } = fill(&mut slot);
            if len == 0 {
                return Ok(done);
            }
            inside.room -= 1;
            inside.counters.sent += 1;
            inside.counters.sent_bytes += len as u64;
            inside.went.push(slot[..len].to_vec());
        }
        Ok(count)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        Ok(0)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(inside.counters)
    }
}
