//! A front end made of messages and bytes: it can say what no other would. Its rings are in a file that it writes
//! with pwrite(2), so that nothing here is mapped, and nothing faults when the file becomes shorter.
use anyhow::{Context, Result, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::fs::File;
use std::io::{IoSlice, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

mod ring;

pub(super) use ring::Layout;
use ring::{Buffer, DEVICE, DRIVER};

pub(super) const VERSION_1: u64 = 1 << 32;
pub(super) const PROTOCOL_FEATURES: u64 = 1 << 30;
/// With it a received packet goes straight to the guest; without it the back end finishes checksums.
pub(super) const GUEST_CSUM: u64 = 1 << 1;
pub(super) const RING_PACKED: u64 = 1 << 34;
/// Of its memory: rings of two queues, then buffers.
pub(super) const MEMORY_LEN: u64 = 1 << 20;
pub(super) const BUFFERS: u64 = 0x4_0000;
/// Behind the buffers of what is sent: as many of what is received at a time.
const ROOM: u64 = BUFFERS + 0x800 * ENTRIES as u64;
const ROOMS: u16 = ((MEMORY_LEN - ROOM) / 0x800) as u16;
const QUEUE_LEN: u64 = 0x1_0000;
pub(super) const ENTRIES: u16 = 256;
/// Where it says that it has its memory itself.
pub(super) const USER: u64 = 0x7f00_0000_0000;

pub(super) struct FrontEnd {
    pub(super) socket: UnixStream,
    pub(super) memory: File,
    header_len: usize,
    layout: Layout,
    kicks: [EventFd; 2],
    calls: [EventFd; 2],
    added: [u16; 2],
}

pub(super) fn memory(len: u64, flags: MFdFlags) -> Result<File> {
    let file = File::from(memfd_create("guest", flags | MFdFlags::MFD_CLOEXEC)?);
    file.set_len(len)?;
    Ok(file)
}

fn bell() -> Result<EventFd> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    Ok(EventFd::from_value_and_flags(0, flags)?)
}

pub(super) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn room(n: u16) -> u64 {
    ROOM + 0x800 * u64::from(n % ROOMS)
}

/// A queue, and a number.
pub(super) fn state(queue: u32, value: u32) -> Vec<u8> {
    [queue.to_ne_bytes(), value.to_ne_bytes()].concat()
}

/// `SET_MEM_TABLE`: guest address, length, user address and offset of each.
pub(super) fn table(regions: &[[u64; 4]]) -> Vec<u8> {
    [vec![regions.len() as u64], regions.concat()]
        .concat()
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect()
}

impl FrontEnd {
    pub(super) fn connect(socket: &Path) -> Result<FrontEnd> {
        FrontEnd::with(socket, memory(MEMORY_LEN, MFdFlags::MFD_ALLOW_SEALING)?)
    }

    pub(super) fn with(socket: &Path, memory: File) -> Result<FrontEnd> {
        let socket = UnixStream::connect(socket).context("connecting")?;
        Ok(FrontEnd {
            socket,
            memory,
            header_len: 12,
            layout: Layout::Split,
            kicks: [bell()?, bell()?],
            calls: [bell()?, bell()?],
            added: [0; 2],
        })
    }

    pub(super) fn say(
        &self,
        request: u32,
        payload: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<()> {
        let head = [request, 1, payload.len() as u32].map(u32::to_ne_bytes);
        self.bytes(&[&head.concat(), payload].concat(), descriptors)
    }

    pub(super) fn bytes(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&numbers)];
        let rights = if numbers.is_empty() { &[][..] } else { &rights };
        let part = [IoSlice::new(bytes)];
        let socket = self.socket.as_raw_fd();
        let sent = sendmsg::<()>(socket, &part, rights, MsgFlags::MSG_NOSIGNAL, None)?;
        ensure!(sent == bytes.len(), "{sent} of {} bytes", bytes.len());
        Ok(())
    }

    /// The answer's payload: all that was said before has been heard.
    pub(super) fn ask(&mut self, request: u32, payload: &[u8]) -> Result<Vec<u8>> {
        self.say(request, payload, &[])?;
        let mut head = [0; 12];
        self.socket.read_exact(&mut head).context("no answer")?;
        let mut answer =
            vec![0; u32::from_ne_bytes([head[8], head[9], head[10], head[11]]) as usize];
        self.socket.read_exact(&mut answer)?;
        Ok(answer)
    }

    /// Both queues begin; they have when this returns.
    pub(super) fn start(&mut self, features: u64) -> Result<()> {
        self.negotiate(features)?;
        for queue in 0..2 {
            self.begin(queue, self.layout.start())?;
        }
        self.ask(1, &[]).map(drop)
    }

    /// Features, and memory.
    pub(super) fn negotiate(&mut self, features: u64) -> Result<()> {
        if features & VERSION_1 == 0 {
            self.header_len = 10;
        }
        if features & RING_PACKED != 0 {
            self.layout = Layout::Packed;
        }
        self.say(3, &[], &[])?;
        self.say(2, &words(&[features]), &[])?;
        let len = self.memory.metadata()?.len();
        let memory = self.memory.as_fd();
        self.say(5, &table(&[[0, len, USER, 0]]), &[memory])
    }

    fn begin(&self, queue: usize, base: u32) -> Result<()> {
        self.tell(queue, base)?;
        self.tell_place(queue)?;
        self.tell_call(queue)?;
        self.tell_kick(queue)?;
        self.enable(queue, true)
    }

    /// Size, and where the ring goes on.
    pub(super) fn tell(&self, queue: usize, base: u32) -> Result<()> {
        self.say(8, &state(queue as u32, ENTRIES.into()), &[])?;
        self.say(10, &state(queue as u32, base), &[])
    }

    pub(super) fn tell_place(&self, queue: usize) -> Result<()> {
        let at = USER + QUEUE_LEN * queue as u64;
        let parts = [queue as u64, at, at + DEVICE, at + DRIVER, 0];
        self.say(9, &words(&parts), &[])
    }

    pub(super) fn tell_call(&self, queue: usize) -> Result<()> {
        let bell = self.calls[queue].as_fd();
        self.say(13, &words(&[queue as u64]), &[bell])
    }

    pub(super) fn tell_kick(&self, queue: usize) -> Result<()> {
        let bell = self.kicks[queue].as_fd();
        self.say(12, &words(&[queue as u64]), &[bell])
    }

    pub(super) fn enable(&self, queue: usize, on: bool) -> Result<()> {
        self.say(18, &state(queue as u32, on.into()), &[])
    }

    /// Where a fresh ring begins.
    pub(super) fn base(&self) -> u32 {
        self.layout.start()
    }

    /// `GET_VRING_BASE`: the queue stops there.
    pub(super) fn stop(&mut self, queue: usize) -> Result<u32> {
        let answer = self.ask(11, &state(queue as u32, 0))?;
        let [.., a, b, c, d] = answer[..] else {
            anyhow::bail!("{answer:?}")
        };
        Ok(u32::from_ne_bytes([a, b, c, d]))
    }

    /// A bell of which the back end knows nothing yet.
    pub(super) fn replace_call(&mut self, queue: usize) -> Result<()> {
        self.calls[queue] = bell()?;
        Ok(())
    }

    /// The one that was in use goes on to be the back end's until it is told.
    pub(super) fn replace_kick(&mut self, queue: usize) -> Result<EventFd> {
        Ok(std::mem::replace(&mut self.kicks[queue], bell()?))
    }

    /// Until the back end has read what was kicked; each answer is a turn of it.
    pub(super) fn heard(&mut self, queue: usize) -> Result<()> {
        loop {
            let bell = PollFd::new(self.kicks[queue].as_fd(), PollFlags::POLLIN);
            if poll(&mut [bell], PollTimeout::ZERO)? == 0 {
                return Ok(());
            }
            self.ask(1, &[])?;
        }
    }

    /// To the next back end, with the rings as they are.
    pub(super) fn reconnect(&mut self, socket: &Path) -> Result<()> {
        self.socket = UnixStream::connect(socket).context("connecting again")?;
        Ok(())
    }

    /// As a guest's end does: where each queue stopped is asked for, and all of it was used.
    pub(super) fn stop_queues(&mut self) -> Result<()> {
        for queue in 0..2u32 {
            let answer = self.ask(11, &state(queue, 0))?;
            let base = self.added[queue as usize].into();
            ensure!(queue == 0 || answer == state(queue, base), "{answer:?}");
        }
        self.forget()
    }

    /// The driver resets the device: its status is 0 (`SET_STATUS`).
    pub(super) fn reset(&mut self) -> Result<()> {
        self.say(39, &words(&[0]), &[])?;
        self.forget()
    }

    /// What was in the rings.
    fn forget(&mut self) -> Result<()> {
        self.added = [0; 2];
        self.ask(1, &[])?;
        let rings = vec![0; BUFFERS as usize];
        self.memory.write_all_at(&rings, 0)?;
        Ok(())
    }

    /// Puts one buffer into a queue's ring, in the memory from `at` on, and kicks.
    pub(super) fn add(&mut self, queue: usize, at: u64, len: usize) -> Result<()> {
        self.offer(queue, at, len)?;
        self.kick(queue)
    }

    /// The same without a kick.
    pub(super) fn offer(&mut self, queue: usize, at: u64, len: usize) -> Result<()> {
        let ring = QUEUE_LEN * queue as u64;
        let buffer = Buffer {
            at,
            len: len as u32,
            writable: queue == 0,
        };
        self.layout
            .add(&self.memory, ring, self.added[queue], buffer)?;
        self.added[queue] = self.added[queue].wrapping_add(1);
        Ok(())
    }

    /// A chain of split descriptors, the first of them `head`: buffers of the memory.
    pub(super) fn offer_chain(
        &mut self,
        queue: usize,
        head: u16,
        parts: &[(u64, u32)],
    ) -> Result<()> {
        let ring = QUEUE_LEN * queue as u64;
        let writable = queue == 0;
        ring::chain(&self.memory, ring, head, parts, writable)?;
        ring::offer(&self.memory, ring, self.added[queue], head)?;
        self.added[queue] = self.added[queue].wrapping_add(1);
        Ok(())
    }

    /// The number and the length of the `n`-th used entry of a split ring.
    pub(super) fn used_entry(&self, queue: usize, n: u16) -> Result<(u32, u32)> {
        ring::used_entry(&self.memory, QUEUE_LEN * queue as u64, n)
    }

    pub(super) fn kick(&self, queue: usize) -> Result<()> {
        Ok(self.kicks[queue].write(1).map(drop)?)
    }

    pub(super) fn send(&mut self, frame: &[u8]) -> Result<()> {
        self.put(frame)?;
        self.kick(1)
    }

    /// The same without a kick.
    pub(super) fn put(&mut self, frame: &[u8]) -> Result<()> {
        let slot = u64::from(self.added[1] % ENTRIES);
        let at = BUFFERS + 0x800 * slot;
        let bytes = [&vec![0; self.header_len], frame].concat();
        self.memory.write_all_at(&bytes, at)?;
        self.offer(1, at, bytes.len())
    }

    /// Room for one frame.
    pub(super) fn take(&mut self) -> Result<()> {
        self.make_room()?;
        self.kick(0)
    }

    /// The same without a kick.
    pub(super) fn make_room(&mut self) -> Result<()> {
        self.offer(0, room(self.added[0]), 0x800)
    }

    /// What came into the `n`-th room.
    pub(super) fn received(&self, n: u16, len: usize) -> Result<Vec<u8>> {
        let mut frame = vec![0; len];
        let at = room(n) + self.header_len as u64;
        self.memory.read_exact_at(&mut frame, at)?;
        Ok(frame)
    }

    pub(super) fn used(&self, queue: usize) -> Result<u16> {
        let ring = QUEUE_LEN * queue as u64;
        self.layout.used(&self.memory, ring, self.added[queue])
    }

    /// Until everything added is used: each batch ends with a call.
    pub(super) fn done(&self, queue: usize) -> Result<()> {
        self.done_until(queue, self.added[queue])
    }

    /// Until `count` entries since the ring's begin are used.
    pub(super) fn done_until(&self, queue: usize, count: u16) -> Result<()> {
        while self.used(queue)? != count {
            let bell = PollFd::new(self.calls[queue].as_fd(), PollFlags::POLLIN);
            let gone = PollFd::new(self.socket.as_fd(), PollFlags::POLLIN);
            poll(&mut [bell, gone], PollTimeout::NONE)?;
            let called = self.calls[queue].read();
            let all = self.used(queue)? == count;
            ensure!(called.is_ok() || all, "the back end ended the connection");
        }
        Ok(())
    }

    /// Until the back end has ended the connection.
    pub(super) fn ended(&mut self) -> Result<()> {
        let mut rest = Vec::new();
        match self.socket.read_to_end(&mut rest) {
            Ok(_) => Ok(()),
            // It had not read everything that was said.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends its connection, and waits until the back end is free for the next one.
    pub(super) fn leave(mut self) -> Result<()> {
        self.socket.shutdown(std::net::Shutdown::Write)?;
        self.ended()
    }
}
