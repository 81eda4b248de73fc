//! Descriptors handed to a target: it makes a pair of sockets, of which one is copied, and receives through the other
//! what is sent into it (SCM_RIGHTS, unix(7)). Events are opened with the recorder's rights so, and not with the
//! target's, which are mostly none.
//!
//! The numbers of what is open there stand in the scratch memory for as long as it is, so that whoever comes after a killed
//! recorder can close it.
use super::counter_room::SCRATCH_BYTES;
use super::error::LiveError;
use super::mapping::call;
use hopscope_process::memory::TargetMemory;
use hopscope_process::{StoppedProcess, fault, memfd, stop_one};
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::fs::{self, File};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd};

pub(super) struct Passage<'m> {
    memory: &'m TargetMemory,
    ours: OwnedFd,
    /// In the target: the end that is copied, and the one that receives.
    ends: [u64; 2],
    scratch: u64,
}

/// At once.
const FILES_MAX: usize = 4;

/// What is written from `scratch` on: the ends, one vector of one byte, `struct msghdr`, and the descriptors
/// (`struct cmsghdr`).
const ENDS: u64 = 0;
const VECTOR: u64 = 8;
const BYTE: u64 = 24;
const MESSAGE: u64 = 32;
const CONTROL: u64 = 88;
const CONTROL_HEADER_BYTES: usize = 16;
const CONTROL_BYTES: usize = CONTROL_HEADER_BYTES + 4 * FILES_MAX;

const _: () = {
    assert!(size_of::<libc::msghdr>() == (CONTROL - MESSAGE) as usize);
    assert!(size_of::<libc::cmsghdr>() == CONTROL_HEADER_BYTES);
    assert!(CONTROL as usize + CONTROL_BYTES <= SCRATCH_BYTES);
};

impl<'m> Passage<'m> {
    /// `scratch`: memory of the target that nothing else uses.
    pub(super) fn open(
        stopped: &mut StoppedProcess,
        memory: &'m TargetMemory,
        scratch: u64,
    ) -> Result<Passage<'m>, LiveError> {
        let (pid, tid) = (stopped.pid(), stopped.tids()[0]);
        let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
        let args = [libc::AF_UNIX as u64, kind, 0, scratch + ENDS, 0, 0];
        forget(pid, memory, scratch + CONTROL, CONTROL_BYTES)?;
        call(stopped, "socketpair", libc::SYS_socketpair, args)?;
        let mut ends = [0u8; 8];
        read(pid, memory, scratch + ENDS, &mut ends)?;
        let ends = u64::from_le_bytes(ends);
        let ends = [ends & 0xffff_ffff, ends >> 32];
        match memfd::copy_of(pid, tid, ends[0]) {
            Ok(ours) => Ok(Passage {
                memory,
                ours,
                ends,
                scratch,
            }),
            Err(e) => {
                close_ends(stopped, memory, scratch, ends)?;
                Err(LiveError::io(pid, "copying a socket of it")(e))
            }
        }
    }

    /// The numbers that the target has for them now.
    pub(super) fn hand(
        &self,
        stopped: &mut StoppedProcess,
        files: &[&File],
    ) -> Result<Vec<u64>, LiveError> {
        let pid = stopped.pid();
        assert!(files.len() <= FILES_MAX, "a message has room for no more");
        let raw: Vec<_> = files.iter().map(|file| file.as_raw_fd()).collect();
        let byte = [IoSlice::new(&[0])];
        let rights = [ControlMessage::ScmRights(&raw)];
        let now = MsgFlags::MSG_DONTWAIT;
        sendmsg::<()>(self.ours.as_raw_fd(), &byte, &rights, now, None)
            .map_err(|e| LiveError::io(pid, "sending descriptors to it")(e.into()))?;
        self.write_message(pid)?;
        let flags = (libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) as u64;
        let args = [self.ends[1], self.scratch + MESSAGE, flags, 0, 0, 0];
        call(stopped, "recvmsg", libc::SYS_recvmsg, args)?;
        fault::point(fault::HANDED);
        let mut control = [0u8; CONTROL_BYTES];
        read(pid, self.memory, self.scratch + CONTROL, &mut control)?;
        let (head, numbers) = control.split_at(CONTROL_HEADER_BYTES);
        let length = u64::from_le_bytes(*head.first_chunk().expect("16 bytes"));
        let got = (length as usize).saturating_sub(CONTROL_HEADER_BYTES) / 4;
        let numbers = numbers.chunks_exact(4).take(got.min(files.len()));
        let numbers: Vec<u64> = numbers
            .map(|n| u32::from_le_bytes(*n.first_chunk().expect("4 bytes")).into())
            .collect();
        if numbers.len() < files.len() {
            for (n, number) in numbers.into_iter().enumerate() {
                self.close_file(stopped, n, number)?;
            }
            // The kernel drops those for which there is no room.
            return Err(LiveError::Remote {
                pid,
                call: "recvmsg",
                source: std::io::Error::from_raw_os_error(libc::EMFILE),
                hint: "; the target has no descriptor left",
            });
        }
        Ok(numbers)
    }

    fn write_message(&self, pid: i32) -> Result<(), LiveError> {
        let at = |offset: u64| self.scratch + offset;
        // iov_base, iov_len, the byte; msg_name, msg_namelen, msg_iov, msg_iovlen, msg_control, msg_controllen, msg_flags
        let words = [
            at(BYTE),
            1,
            0,
            0,
            0,
            at(VECTOR),
            1,
            at(CONTROL),
            CONTROL_BYTES as u64,
            0,
            0,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let written = self.memory.write(at(VECTOR), &bytes);
        written.map_err(LiveError::io(pid, WHERE))
    }

    /// The `n`th of those that were handed over last.
    pub(super) fn close_file(
        &self,
        stopped: &mut StoppedProcess,
        n: usize,
        fd: u64,
    ) -> Result<(), LiveError> {
        let at = self.scratch + CONTROL + (CONTROL_HEADER_BYTES + 4 * n) as u64;
        forget(stopped.pid(), self.memory, at, 4)?;
        close(stopped, fd)
    }

    pub(super) fn close(self, stopped: &mut StoppedProcess) -> Result<(), LiveError> {
        close_ends(stopped, self.memory, self.scratch, self.ends)
    }
}

/// Closes what a recorder that was killed in between left open. Numbers that others have by now are left alone where they
/// are of another kind.
///
/// # Errors
/// The process could not be stopped.
pub(super) fn close_leftovers(
    pid: i32,
    memory: &TargetMemory,
    scratch: u64,
) -> Result<(), LiveError> {
    let mut bytes = [0; SCRATCH_BYTES];
    if memory.read(scratch, &mut bytes).is_err() {
        return Ok(());
    }
    let number = |at: u64| {
        let word = bytes[at as usize..].first_chunk().copied();
        u64::from(u32::from_le_bytes(word.unwrap_or_default()))
    };
    let numbers = CONTROL + CONTROL_HEADER_BYTES as u64;
    let files = (0..FILES_MAX as u64).map(|n| (numbers + 4 * n, "anon_inode:[perf_event]"));
    let ends = [(ENDS, "socket:"), (ENDS + 4, "socket:")];
    let is_open = |(at, kind): &(u64, &str)| {
        let link = fs::read_link(format!("/proc/{pid}/fd/{}", number(*at)));
        number(*at) > 0 && link.is_ok_and(|link| link.to_string_lossy().starts_with(kind))
    };
    let open: Vec<_> = files.chain(ends).filter(is_open).collect();
    if open.is_empty() {
        return Ok(());
    }
    let mut one = stop_one(pid)?;
    let closed = open.iter().try_for_each(|(at, _)| {
        forget(pid, memory, scratch + at, 4)?;
        close(&mut one, number(*at))
    });
    one.resume()?;
    closed
}

/// Before they are closed: the next file that the target opens has the number.
fn forget(pid: i32, memory: &TargetMemory, at: u64, bytes: usize) -> Result<(), LiveError> {
    let written = memory.write(at, &vec![0; bytes]);
    written.map_err(LiveError::io(pid, WHERE))
}

fn close_ends(
    stopped: &mut StoppedProcess,
    memory: &TargetMemory,
    scratch: u64,
    ends: [u64; 2],
) -> Result<(), LiveError> {
    let mut closed = Ok(());
    for (n, end) in ends.into_iter().enumerate() {
        let at = scratch + ENDS + 4 * n as u64;
        let done = forget(stopped.pid(), memory, at, 4).and_then(|()| close(stopped, end));
        closed = closed.and(done);
    }
    closed
}

/// In messages.
const WHERE: &str = "where it receives descriptors";

fn read(pid: i32, memory: &TargetMemory, at: u64, into: &mut [u8]) -> Result<(), LiveError> {
    memory.read(at, into).map_err(LiveError::io(pid, WHERE))
}

fn close(stopped: &mut StoppedProcess, fd: u64) -> Result<(), LiveError> {
    call(stopped, "close", libc::SYS_close, [fd, 0, 0, 0, 0, 0]).map(drop)
}
