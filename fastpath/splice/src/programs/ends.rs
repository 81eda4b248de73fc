//! What the kernel knows of each end that takes part: read by a program of its iterator over what is kept with
//! sockets. `struct facts` of `bpf/contract.h`.
use super::{Count, SpliceError};
use hopscope_bpf::compiled;
use hopscope_bpf::object::{self, has_capabilities};
use libbpf_rs::{Iter, Link, MapCore, Object};
use std::io::Read;
use std::os::fd::BorrowedFd;

static OBJECT: &[u8] = compiled!("ends");
const LINE: usize = 96;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct End {
    pub cookie: u64,
    /// The other end's; 0: a client that has not sent yet does not know it.
    pub peer: u64,
    /// Bytes that were redirected to it and are not read; 0 where the kernel keeps no sum.
    pub queued: u64,
    /// Bytes that it redirected.
    pub direct: u64,
    /// Messages that it sent, by either way.
    pub messages: u64,
    /// Of its descriptor, as /proc/PID/fd has it; 0 while it has none.
    pub inode: u64,
    /// Thread that sent last, as its process and itself; (0, 0): it is not noted.
    pub sender: (u32, u32),
    /// How often another thread sent than before.
    pub senders: u32,
    /// Calls under way that may still put something into the other end's queue, and receives that wait.
    pub users: u32,
    pub asleep: u32,
    /// Sequence numbers of TCP: read, and written.
    pub copied: u32,
    pub written: u32,
    pub uid: u32,
    pub flags: u32,
    /// Cookie of its network namespace, and the number of the device there that it sends by; 0 without a route.
    pub netns: u64,
    pub device: u32,
}

impl End {
    pub const SERVER: u32 = 1;
    /// It is in the map of sockets.
    pub const JOINED: u32 = 2;
    /// The other end is too: its messages may be redirected.
    pub const OPEN: u32 = 4;
    pub const LEAVING: u32 = 8;
    pub const QUEUED: u32 = 16;
    /// `O_NONBLOCK` is not set.
    pub const CAN_WAIT: u32 = 32;
    /// An option is set that redirected bytes do not keep to.
    pub const UNLIKE: u32 = 64;
    /// Not accepted yet, or closed by its program.
    pub const NO_FILE: u32 = 128;
    /// Its program used a call that redirected bytes do not keep to.
    pub const CALLS: u32 = 256;
    /// Something came by TCP that is not read; of one that is gathered, and is not in the queue of redirected bytes.
    pub const UNREAD: u32 = 512;
    /// A message that the other end was to redirect may be on its way into its queue; also where that is not known.
    pub const COMING: u32 = 1024;
    /// Its program has received with MSG_PEEK since it joined.
    pub const PEEKED: u32 = 2048;
    /// What comes by TCP goes into the queue of redirected bytes.
    pub const GATHERED: u32 = 4096;
    /// Not of the kernel programs: its device cannot be watched, so a close with unread bytes would not be a reset.
    pub const FIN_UNSEEN: u32 = 1 << 31;

    pub const fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn of(line: &[u8]) -> End {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&line[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        let half = |at: usize| {
            let mut half = [0; 4];
            half.copy_from_slice(&line[at..at + 4]);
            u32::from_ne_bytes(half)
        };
        End {
            cookie: word(0),
            peer: word(8),
            queued: word(16),
            direct: word(24),
            messages: word(32),
            inode: word(40),
            sender: (half(52), half(48)),
            users: half(56),
            asleep: half(60),
            copied: half(64),
            written: half(68),
            uid: half(72),
            flags: half(76),
            senders: half(80),
            device: half(84),
            netns: word(88),
        }
    }
}

/// What can be done with an end: `enum order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Into the map, if it still receives without waiting.
    Join = 1,
    /// Messages may be redirected: both ends are in the map.
    Open,
    /// Every message takes TCP from now on.
    Leave,
    /// Out of the map: nothing is in its queue, nor on its way there.
    Release,
    /// Its reader is shown what came by TCP behind redirected bytes.
    Gather,
}

impl Order {
    /// `struct order_entry`
    pub(super) fn value(self, reason: Option<Count>) -> [u8; 8] {
        let reason = reason.map_or(u32::MAX, |count| count as u32);
        let mut value = [0; 8];
        value[..4].copy_from_slice(&(self as u32).to_ne_bytes());
        value[4..].copy_from_slice(&reason.to_ne_bytes());
        value
    }
}

pub struct Ends {
    link: Link,
    _object: Object,
}

impl Ends {
    pub(super) fn of(map: BorrowedFd<'_>) -> Result<Ends, SpliceError> {
        let what = "looking at ends";
        let object = object::load(OBJECT, "splice_facts", has_capabilities, |_| Ok(()))?;
        let program = object::program(&object, "ends")?;
        let link = program.attach_iter(map).map_err(SpliceError::bpf(what))?;
        Ok(Ends {
            link,
            _object: object,
        })
    }

    /// # Errors
    /// The kernel does not say.
    pub fn look(&self) -> Result<Vec<End>, SpliceError> {
        let bytes = run(&self.link, "reading what is known of ends")?;
        Ok(bytes.chunks_exact(LINE).map(End::of).collect())
    }
}

/// By which other processes find a map.
pub(super) fn number(map: &impl MapCore) -> Result<u32, SpliceError> {
    let info = map
        .info()
        .map_err(SpliceError::bpf("reading a map's number"))?;
    Ok(info.info.id)
}

/// Runs an iterator's program over everything.
pub(super) fn run(link: &Link, what: &'static str) -> Result<Vec<u8>, SpliceError> {
    let mut bytes = Vec::new();
    let mut iter = Iter::new(link).map_err(SpliceError::bpf(what))?;
    iter.read_to_end(&mut bytes)
        .map_err(|error| SpliceError::call(what, error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut line = Vec::new();
        for word in [1u64, 2, 3, 4, 5, 11, (12 << 32) | 13] {
            line.extend(word.to_ne_bytes());
        }
        for half in [6u32, 7, 8, 9, 10, End::SERVER | End::QUEUED, 14, 15] {
            line.extend(half.to_ne_bytes());
        }
        line.extend(16u64.to_ne_bytes());
        assert_eq!(line.len(), LINE);
        let end = End::of(&line);
        assert_eq!((end.cookie, end.peer, end.queued), (1, 2, 3));
        assert_eq!((end.direct, end.messages, end.inode), (4, 5, 11));
        assert_eq!((end.users, end.sender, end.senders), (6, (12, 13), 14));
        assert_eq!(
            (end.asleep, end.copied, end.written, end.uid),
            (7, 8, 9, 10)
        );
        assert_eq!((end.device, end.netns), (15, 16));
        assert!(end.is(End::SERVER) && end.is(End::QUEUED) && !end.is(End::JOINED));
    }
}
