//! Coalescing as a driver configures it: `VIRTIO_NET_F_NOTF_COAL` (virtio 1.3, 5.1.6.5.8).
use super::{Rule, Seen, Wish};
use crate::Ns;

/// A notification when `packets` are pending or the first of them has been for `time`, whichever comes
/// first, unless it is suppressed; then both start anew. 0 packets: only the time counts. A time of 0
/// has always passed, also with a number of packets: that many might never come.
pub(super) struct Coalesce {
    pub(super) packets: u32,
    pub(super) time: Ns,
}

impl Rule for Coalesce {
    fn wish(&mut self, seen: Seen) -> Wish {
        let enough = self.packets > 0 && seen.unannounced >= self.packets;
        let due = seen.oldest + self.time;
        if enough || seen.now >= due {
            Wish::Ask
        } else {
            Wish::Wait(due)
        }
    }

    fn bound(&self) -> Ns {
        self.time
    }
}
