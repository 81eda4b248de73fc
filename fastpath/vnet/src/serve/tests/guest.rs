//! A front end and its drivers in this process, which do as they are told: fair, or not at all.
use super::descriptors::{self, Bell, borrowed};
use super::framing::{message, send};
use crate::ring::{DriverRing, Features, Layout, Segment, packed, split};
use crate::serve::memory::{Mapped, map};
use crate::vhost::Region;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use vm_memory::GuestAddress;

pub(super) const MEMORY_LEN: u64 = 0x8_0000;
/// Rings of a queue.
const QUEUE_LEN: u64 = 0x1_0000;
const DRIVER: u64 = 0x8000;
const DEVICE: u64 = 0xc000;
const BUFFERS: u64 = 0x4_0000;
const USER: u64 = 0x7f00_0000_0000;

pub(super) struct Guest {
    pub(super) file: File,
    /// As its drivers see it.
    mapped: Mapped,
    pub(super) kicks: Vec<Bell>,
    pub(super) calls: Vec<Bell>,
    drivers: Vec<Option<Box<dyn DriverRing>>>,
    socket: Option<UnixStream>,
}

fn layout(queue: usize, size: u16) -> Layout {
    let at = |offset| GuestAddress(QUEUE_LEN * queue as u64 + offset);
    Layout {
        size,
        descriptors: at(0),
        driver: at(DRIVER),
        device: at(DEVICE),
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Guest {
    pub(super) fn new(queues: usize) -> Guest {
        let file = descriptors::memory(MEMORY_LEN);
        let region = Region {
            guest: 0,
            len: MEMORY_LEN,
            user: USER,
            offset: 0,
        };
        let own = file.try_clone().expect("a descriptor");
        let mapped = map(&[region], vec![own.into()]).expect("fair memory");
        let bells = || (0..queues).map(|_| Bell::new()).collect();
        Guest {
            file,
            mapped,
            kicks: bells(),
            calls: bells(),
            drivers: (0..queues).map(|_| None).collect(),
            socket: None,
        }
    }

    pub(super) fn connect(&mut self, path: &Path) {
        self.socket = UnixStream::connect(path).ok();
        if let Some(socket) = &self.socket {
            let _ = socket.set_nonblocking(true);
        }
    }

    pub(super) fn leave(&mut self) {
        self.socket = None;
    }

    /// Whatever it is; the back end may have gone.
    pub(super) fn say(&self, request: u32, flags: u32, payload: &[u8], descriptors: &[i32]) {
        if let Some(socket) = &self.socket {
            // Answers are not for this one; but with them unread the back end would have to give up.
            let mut answers = [0; 4096];
            while matches!(std::io::Read::read(&mut &*socket, &mut answers), Ok(1..)) {}
            let _ = send(socket, &message(request, flags, payload), descriptors);
        }
    }

    pub(super) fn bytes(&self, bytes: &[u8]) {
        if let Some(socket) = &self.socket {
            let _ = send(socket, bytes, &[]);
        }
    }

    fn number(&self) -> i32 {
        self.file.as_raw_fd()
    }

    pub(super) fn negotiate(&self, features: u64) {
        self.say(3, 1, &[], &[]);
        self.say(2, 1, &words(&[features | 1 << 30]), &[]);
        let table = words(&[1, 0, MEMORY_LEN, USER, 0]);
        self.say(5, 1, &table, &[self.number()]);
    }

    /// A fresh queue of `size` with a driver for it.
    pub(super) fn start(&mut self, n: usize, size: u16, features: u64) {
        let layout = layout(n, size);
        let ring = Features {
            event_idx: features & 1 << 29 != 0,
            indirect: features & 1 << 28 != 0,
        };
        let memory = &self.mapped.memory;
        let packed = features & 1 << 34 != 0;
        let driver: Option<Box<dyn DriverRing>> = if packed {
            packed::DriverQueue::new(memory, layout, ring)
                .ok()
                .map(|queue| Box::new(queue) as _)
        } else {
            split::DriverQueue::new(memory, layout, ring)
                .ok()
                .map(|queue| Box::new(queue) as _)
        };
        self.drivers[n] = driver;
        let queue = n as u32;
        let state = |value: u32| [queue.to_ne_bytes(), value.to_ne_bytes()].concat();
        self.say(8, 1, &state(size.into()), &[]);
        self.say(10, 1, &state(if packed { 0x8000_8000 } else { 0 }), &[]);
        let user = |address: GuestAddress| USER + address.0;
        let parts = [
            n as u64,
            user(layout.descriptors),
            user(layout.device),
            user(layout.driver),
            0,
        ];
        self.say(9, 1, &words(&parts), &[]);
        let call = borrowed(&self.calls[n]).as_raw_fd();
        let kick = borrowed(&self.kicks[n]).as_raw_fd();
        self.say(13, 1, &words(&[n as u64]), &[call]);
        self.say(12, 1, &words(&[n as u64]), &[kick]);
        self.say(18, 1, &state(1), &[]);
    }

    /// A chain whose buffers are in its memory, mostly. The first has a header of zeros.
    pub(super) fn add(&mut self, n: usize, parts: &[(u64, u32)]) {
        let segment = |(k, (at, len)): (usize, &(u64, u32))| {
            let address = BUFFERS + at;
            if n % 2 == 1 && k == 0 {
                let _ = self.file.write_all_at(&[0; 12], address);
            }
            Segment {
                address: GuestAddress(address),
                len: *len,
                writable: n.is_multiple_of(2),
            }
        };
        let segments: Vec<Segment> = parts.iter().enumerate().map(segment).collect();
        if let Some(driver) = &mut self.drivers[n] {
            let _ = driver.add_avail(&self.mapped.memory, &segments);
        }
        self.kick(n);
    }

    pub(super) fn reclaim(&mut self, n: usize) -> bool {
        let Some(driver) = &mut self.drivers[n] else {
            return false;
        };
        matches!(driver.next_used(&self.mapped.memory), Ok(Some(_)))
    }

    pub(super) fn ask(&mut self, n: usize, ahead: Option<u16>) {
        if let Some(driver) = &mut self.drivers[n] {
            let _ = match ahead {
                Some(ahead) => driver
                    .enable_notification(&self.mapped.memory, ahead % 64)
                    .map(drop),
                None => driver.disable_notification(&self.mapped.memory),
            };
        }
    }

    pub(super) fn kick(&self, n: usize) {
        let _ = self.kicks[n].0.write(1);
    }

    /// Bytes over a queue's rings.
    pub(super) fn spoil(&self, n: usize, at: u64, bytes: &[u8]) {
        let at = QUEUE_LEN * n as u64 + at % QUEUE_LEN;
        // Not beyond the end, which may have been cut: writing there would bring it back.
        let len = self.file.metadata().map_or(0, |file| file.len());
        if at + bytes.len() as u64 <= len {
            let _ = self.file.write_all_at(bytes, at);
        }
    }

    /// Its memory's file, shorter or long again.
    pub(super) fn cut(&self, len: u64) {
        let _ = self.file.set_len(len);
    }
}
