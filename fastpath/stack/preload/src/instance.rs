//! This process's way to the instance, a `stack serve` that has the stack.
use crate::kernel;
use crate::numbers::out_of_the_way;
use crate::say::{once, say};
use crate::table::{self, Entry};
use hopscope_stack_instance::programs::passing::{self, RecvFlags, SendFlags};
use hopscope_stack_instance::programs::wire::{self, MESSAGE_MAX, Name, Request, Response};
use nix::libc;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

static GONE_SAID: AtomicBool = AtomicBool::new(false);

/// This process's way to the instance.
pub struct Instance {
    door: OwnedFd,
    /// Where this process asks, once it has.
    channel: Option<OwnedFd>,
    taken: Marks,
    shut: Marks,
    /// Of sockets of UDP: up to which of their errors a call has returned them.
    heard: HashMap<u32, (u32, u16)>,
}

/// Of rows: of which socket that had it something was noted last. No more than there are rows.
#[derive(Default)]
struct Marks(HashMap<u32, u32>);

impl Marks {
    fn has(&self, name: Name) -> bool {
        self.0.get(&name.row) == Some(&name.generation)
    }

    /// False: it was noted before.
    fn note(&mut self, name: Name) -> bool {
        self.0.insert(name.row, name.generation) != Some(name.generation)
    }
}

impl Instance {
    pub fn new(door: i32) -> Instance {
        Instance {
            door: kernel::own(door),
            channel: None,
            taken: Marks::default(),
            shut: Marks::default(),
            heard: HashMap::new(),
        }
    }

    /// A call returns the socket's error; false: one has before.
    pub fn take_error(&mut self, name: Name) -> bool {
        self.taken.note(name)
    }

    /// All of its errors up to this one are told; false: they were before.
    pub fn hear_of(&mut self, name: Name, count: u16) -> bool {
        let is_new = !self.has_heard_of(name, count);
        if is_new {
            self.heard.insert(name.row, (name.generation, count));
        }
        is_new
    }

    pub fn has_heard_of(&self, name: Name, count: u16) -> bool {
        let heard = self.heard.get(&name.row);
        let before = heard.map_or(0, |(generation, count)| {
            match *generation == name.generation {
                true => *count,
                false => 0,
            }
        });
        // They are counted round.
        count.wrapping_sub(before) as i16 <= 0
    }

    /// This process has shut it down.
    pub fn shut_down(&mut self, name: Name) {
        self.shut.note(name);
    }

    pub fn is_shut(&self, name: Name) -> bool {
        self.shut.has(name)
    }

    /// The channel is the parent's.
    pub fn forked(&mut self) {
        self.hang_up();
    }

    fn hang_up(&mut self) {
        if let Some(channel) = self.channel.take() {
            // Its owner closes it, which the program could not.
            table::set(channel.as_raw_fd(), Entry::Kernel);
        }
    }

    fn channel(&mut self) -> Result<BorrowedFd<'_>, i32> {
        if self.channel.is_none() {
            let flags = SocketFlags::CLOEXEC;
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
            let (ours, theirs) = pair.map_err(Errno::raw_os_error)?;
            let sent = passing::send(&self.door, &[1], &[theirs.as_fd()], SendFlags::empty());
            sent.map_err(|_| gone())?;
            let ours = out_of_the_way(ours.into_raw_fd())?;
            table::set(ours, Entry::Internal);
            self.channel = Some(kernel::own(ours));
        }
        self.channel.as_ref().map(AsFd::as_fd).ok_or(libc::EIO)
    }

    /// # Errors
    /// What the instance says; ENETDOWN: it is gone.
    pub fn ask(
        &mut self,
        request: &Request,
        fd: Option<BorrowedFd<'_>>,
    ) -> Result<(Response, Option<OwnedFd>), i32> {
        let channel = self.channel()?;
        let fds: Vec<_> = fd.into_iter().collect();
        let bytes = wire::to_bytes(request);
        let mut answer = vec![0; MESSAGE_MAX];
        let sent = loop {
            match passing::send(channel, &bytes, &fds, SendFlags::empty()) {
                Err(Errno::INTR) => {}
                sent => break sent,
            }
        };
        let came = sent.and_then(|_| {
            loop {
                match passing::receive(channel, &mut answer, RecvFlags::empty()) {
                    Err(Errno::INTR) => {}
                    came => break came,
                }
            }
        });
        match came {
            Ok(mut passed) if passed.len > 0 => match wire::from_bytes(&answer[..passed.len]) {
                Ok(Response::Failed(errno)) => Err(errno),
                Ok(_) if passed.cut => Err(libc::EMFILE),
                Ok(response) => Ok((response, passed.fds.pop())),
                Err(error) => {
                    say(&format!(
                        "the stack's instance says what it cannot: {error}"
                    ));
                    Err(libc::EIO)
                }
            },
            _ => {
                self.hang_up();
                Err(gone())
            }
        }
    }
}

fn gone() -> i32 {
    once(&GONE_SAID, || {
        "the `stack serve` that has the stack is gone: calls on its sockets fail (ENETDOWN), and connections are reset".into()
    });
    libc::ENETDOWN
}

/// That was told.
pub fn is_gone() -> bool {
    GONE_SAID.load(Ordering::Relaxed)
}

/// The peer did not end a connection that has ended.
pub fn lost() -> i32 {
    gone();
    libc::ECONNRESET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_one_mark() {
        let mut marks = Marks::default();
        let of = |generation| Name { row: 7, generation };
        assert!(!marks.has(of(1)) && marks.note(of(1)) && !marks.note(of(1)));
        assert!(marks.note(of(2)) && marks.has(of(2)) && !marks.has(of(1)));
        assert_eq!(marks.0.len(), 1);
    }
}
