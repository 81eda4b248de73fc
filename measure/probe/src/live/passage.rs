//! Descriptors handed to a target: it makes a pair of sockets, of which one is copied, and receives through the other
//! what is sent into it (SCM_RIGHTS, unix(7)). Events are opened with the recorder's rights so, and not with the
//! target's, which are mostly none.
use super::error::LiveError;
use super::mapping::call;
use hopscope_process::StoppedProcess;
use hopscope_process::memfd;
use hopscope_process::memory::TargetMemory;
use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::fs::File;
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

/// What is written behind `scratch`: the ends, one vector of one byte, `struct msghdr`, and the descriptors
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
    assert!(CONTROL as usize + CONTROL_BYTES <= super::counter_pages::SCRATCH_BYTES);
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
                for end in ends {
                    close(stopped, end)?;
                }
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
            for number in numbers {
                close(stopped, number)?;
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

    pub(super) fn close(self, stopped: &mut StoppedProcess) -> Result<(), LiveError> {
        let closed = self.ends.map(|end| close(stopped, end));
        closed.into_iter().collect()
    }
}

/// In messages.
const WHERE: &str = "where it receives descriptors";

fn read(pid: i32, memory: &TargetMemory, at: u64, into: &mut [u8]) -> Result<(), LiveError> {
    memory.read(at, into).map_err(LiveError::io(pid, WHERE))
}

pub(super) fn close(stopped: &mut StoppedProcess, fd: u64) -> Result<(), LiveError> {
    call(stopped, "close", libc::SYS_close, [fd, 0, 0, 0, 0, 0]).map(drop)
}
