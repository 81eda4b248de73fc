//! A front end made of messages and bytes: it can say what no other would. Split rings in a file that it writes
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

pub(super) const VERSION_1: u64 = 1 << 32;
pub(super) const PROTOCOL_FEATURES: u64 = 1 << 30;
/// Of its memory: rings of two queues, then buffers.
pub(super) const MEMORY_LEN: u64 = 1 << 20;
pub(super) const BUFFERS: u64 = 0x4_0000;
const QUEUE_LEN: u64 = 0x1_0000;
pub(super) const ENTRIES: u16 = 256;
/// Where it says that it has its memory itself.
pub(super) const USER: u64 = 0x7f00_0000_0000;

pub(super) struct FrontEnd {
    pub(super) socket: UnixStream,
    pub(super) memory: File,
    header_len: usize,
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

    /// Both queues begin; true once they have.
    pub(super) fn start(&mut self, features: u64) -> Result<()> {
        if features & VERSION_1 == 0 {
            self.header_len = 10;
        }
        self.say(3, &[], &[])?;
        self.say(2, &words(&[features]), &[])?;
        let len = self.memory.metadata()?.len();
        let memory = self.memory.as_fd();
        self.say(5, &table(&[[0, len, USER, 0]]), &[memory])?;
        for queue in 0..2u32 {
            let n = queue as usize;
            let at = USER + QUEUE_LEN * u64::from(queue);
            self.say(8, &state(queue, ENTRIES.into()), &[])?;
            self.say(10, &state(queue, 0), &[])?;
            let parts = [queue.into(), at, at + 0x2000, at + 0x1000, 0];
            self.say(9, &words(&parts), &[])?;
            self.say(13, &words(&[queue.into()]), &[self.calls[n].as_fd()])?;
            self.say(12, &words(&[queue.into()]), &[self.kicks[n].as_fd()])?;
            self.say(18, &state(queue, 1), &[])?;
        }
        self.ask(1, &[]).map(drop)
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
        let ring = QUEUE_LEN * queue as u64;
        let slot = u64::from(self.added[queue] % ENTRIES);
        let writable: u16 = if queue == 0 { 2 } else { 0 };
        let mut descriptor = at.to_le_bytes().to_vec();
        descriptor.extend((len as u32).to_le_bytes());
        descriptor.extend([writable.to_le_bytes(), [0; 2]].concat());
        self.memory.write_all_at(&descriptor, ring + 16 * slot)?;
        let entry = (slot as u16).to_le_bytes();
        self.memory.write_all_at(&entry, ring + 0x1004 + 2 * slot)?;
        self.added[queue] = self.added[queue].wrapping_add(1);
        let index = self.added[queue].to_le_bytes();
        self.memory.write_all_at(&index, ring + 0x1002)?;
        self.kick(queue)
    }

    pub(super) fn kick(&self, queue: usize) -> Result<()> {
        Ok(self.kicks[queue].write(1).map(drop)?)
    }

    pub(super) fn send(&mut self, frame: &[u8]) -> Result<()> {
        let slot = u64::from(self.added[1] % ENTRIES);
        let at = BUFFERS + 0x800 * slot;
        let bytes = [&vec![0; self.header_len], frame].concat();
        self.memory.write_all_at(&bytes, at)?;
        self.add(1, at, bytes.len())
    }

    /// Room for one frame.
    pub(super) fn take(&mut self) -> Result<()> {
        let slot = u64::from(self.added[0] % ENTRIES);
        self.add(0, BUFFERS + 0x800 * slot, 0x800)
    }

    pub(super) fn received(&self, slot: u16, len: usize) -> Result<Vec<u8>> {
        let mut frame = vec![0; len];
        let at = BUFFERS + 0x800 * u64::from(slot) + self.header_len as u64;
        self.memory.read_exact_at(&mut frame, at)?;
        Ok(frame)
    }

    fn used(&self, queue: usize) -> Result<u16> {
        let mut index = [0; 2];
        let at = QUEUE_LEN * queue as u64 + 0x2002;
        self.memory.read_exact_at(&mut index, at)?;
        Ok(u16::from_le_bytes(index))
    }

    /// Until everything added is used: each batch ends with a call.
    pub(super) fn done(&self, queue: usize) -> Result<()> {
        while self.used(queue)? != self.added[queue] {
            let bell = PollFd::new(self.calls[queue].as_fd(), PollFlags::POLLIN);
            let gone = PollFd::new(self.socket.as_fd(), PollFlags::POLLIN);
            poll(&mut [bell, gone], PollTimeout::NONE)?;
            let called = self.calls[queue].read();
            let all = self.used(queue)? == self.added[queue];
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
