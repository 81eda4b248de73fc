//! Traffic of a case: the arguments of its programs, and its ports.

pub(super) const PORTS: u16 = 16;

/// The server's first: of each process others, so that no test asks for another's packets.
pub(super) fn port() -> u16 {
    // Below those that the kernel gives to clients.
    10_000 + (std::process::id() % 1400) as u16 * PORTS
}

/// The arguments of `truth.c`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traffic {
    pub(super) protocol: &'static str,
    pub(super) is_six: bool,
    pub(super) rounds: u64,
    pub(super) burst: u64,
    pub(super) size: u64,
    pub(super) read: u64,
    pub(super) writer: &'static str,
    pub(super) reader: &'static str,
    pub(super) flows: u64,
    pub(super) mode: &'static str,
    pub(super) writers: u64,
    pub(super) readers: u64,
    /// On the way, by the bridge.
    pub(super) may_lose: bool,
    pub(super) may_reorder: bool,
    pub(super) may_duplicate: bool,
    /// Of `hopscope slice`.
    pub(super) options: &'static [&'static str],
    pub(super) slicer: SlicerIs,
}

/// What is done to the slicer while packets are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlicerIs {
    Always,
    /// Its process does not run, so that the ring becomes full.
    Stopped,
    /// Its hooks see nothing for some of the time: by its options, or by `slice set enable`.
    AtTimes,
    Toggled,
}

impl Traffic {
    pub(super) fn is_stream(&self) -> bool {
        self.protocol == "tcp"
    }
}

impl Default for Traffic {
    fn default() -> Traffic {
        Traffic {
            protocol: "tcp",
            is_six: false,
            rounds: 1,
            burst: 1,
            size: 64,
            read: 65_536,
            writer: "send",
            reader: "recv",
            flows: 1,
            mode: "rounds",
            writers: 1,
            readers: 1,
            may_lose: false,
            may_reorder: false,
            may_duplicate: false,
            // The first bytes have UDP's number of the message.
            options: &["-s", "64"],
            slicer: SlicerIs::Always,
        }
    }
}
