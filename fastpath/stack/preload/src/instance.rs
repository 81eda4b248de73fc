//! This process's way to the instance, a `stack serve` that has the stack.
use crate::bells::Bells;
use crate::kernel;
use crate::made::MadeSockets;
use crate::numbers::out_of_the_way;
use crate::rows;
use crate::say::{once, say};
use crate::spares::Spares;
use crate::table::{self, Entry};
use hopscope_stack_instance::handed::{HandedInstance, Reach};
use hopscope_stack_instance::programs::joining::{JoinError, join};
use hopscope_stack_instance::programs::passing::{self, RecvFlags, SendFlags};
use hopscope_stack_instance::programs::wire::{self, MESSAGE_MAX, Name, Request, Response};
use nix::libc;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

static OTHER_SAID: AtomicBool = AtomicBool::new(false);
static GONE_SAID: AtomicBool = AtomicBool::new(false);
/// Whether it has come back since or not.
static HAS_GONE: AtomicBool = AtomicBool::new(false);

/// This process's way to the instance.
pub struct Instance {
    door: OwnedFd,
    handed: HandedInstance,
    reach: Reach,
    /// Where this process asks, once it has.
    channel: Option<OwnedFd>,
    spares: Spares,
    taken: Marks,
    shut: Marks,
    /// A call of connect has left before it was over: the first one behind it tells that it is.
    begun: Marks,
    /// Of sockets of UDP: up to which of their errors a call has returned them.
    heard: HashMap<u32, (u32, u16)>,
    pub made: MadeSockets,
    pub bells: Bells,
}

/// Of rows: of which socket that had it something was noted last. No more than there are rows.
#[derive(Default)]
struct Marks(HashMap<u32, u32>);

impl Marks {
    fn has(&self, name: Name) -> bool {
        self.0.get(&name.row) == Some(&name.generation)
    }

    fn take(&mut self, name: Name) -> bool {
        let has = self.has(name);
        if has {
            self.0.remove(&name.row);
        }
        has
    }

    /// False: it was noted before.
    fn note(&mut self, name: Name) -> bool {
        self.0.insert(name.row, name.generation) != Some(name.generation)
    }
}

impl Instance {
    pub fn new(handed: &HandedInstance, reach: &Reach) -> Instance {
        Instance {
            door: kernel::own(handed.door),
            handed: handed.clone(),
            reach: reach.clone(),
            channel: None,
            spares: Spares::default(),
            taken: Marks::default(),
            shut: Marks::default(),
            begun: Marks::default(),
            heard: HashMap::new(),
            made: MadeSockets::default(),
            bells: Bells::default(),
        }
    }

    /// Where it is found in the file system.
    pub fn path(&self) -> &Path {
        &self.handed.again.path
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

    pub fn connect_goes_on(&mut self, name: Name) {
        self.begun.note(name);
    }

    pub fn take_begun(&mut self, name: Name) -> bool {
        self.begun.take(name)
    }

    pub fn is_shut(&self, name: Name) -> bool {
        self.shut.has(name)
    }

    /// The channel is the parent's.
    pub fn forked(&mut self) {
        self.hang_up();
        self.bells.forked();
    }

    fn hang_up(&mut self) {
        if let Some(channel) = self.channel.take() {
            // Its owner closes it, which the program could not.
            table::set(channel.as_raw_fd(), Entry::Kernel);
        }
    }

    fn channel(&mut self) -> Result<BorrowedFd<'_>, Failure> {
        if self.channel.is_none() {
            let flags = SocketFlags::CLOEXEC;
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
            let (ours, theirs) = pair.map_err(|errno| Failure::Errno(errno.raw_os_error()))?;
            let sent = passing::send(&self.door, &[1], &[theirs.as_fd()], SendFlags::empty());
            sent.map_err(|_| Failure::Gone)?;
            drop(theirs);
            let ours = out_of_the_way(ours.into_raw_fd()).map_err(Failure::Errno)?;
            table::set(ours, Entry::Internal);
            self.channel = Some(kernel::own(ours));
        }
        let channel = self.channel.as_ref().map(AsFd::as_fd);
        channel.ok_or(Failure::Errno(libc::EIO))
    }

    /// For an answer, and for both ends of a channel where there is none yet.
    pub fn keep_spares(&mut self) {
        let many = 1 + usize::from(self.channel.is_none());
        self.spares.keep(many, self.door.as_raw_fd());
    }

    pub fn has_spares(&self) -> bool {
        !self.spares.is_empty()
    }

    /// # Errors
    /// What the instance says; ENETDOWN: it is gone, or another one has come since that does not know the socket.
    pub fn ask(
        &mut self,
        request: &Request,
        fd: Option<BorrowedFd<'_>>,
    ) -> Result<(Response, Option<OwnedFd>), i32> {
        if request.name().is_some_and(|name| !rows::is_there(name)) {
            return Err(of_one_that_is_gone());
        }
        match self.ask_once(request, fd) {
            Err(Failure::Gone) if request.name().is_none() && self.joins_again() => {
                self.ask_once(request, fd).map_err(Failure::errno)
            }
            answer => answer.map_err(Failure::errno),
        }
    }

    /// The instance is back, as it was: new sockets are its own.
    fn joins_again(&mut self) -> bool {
        let again = &self.handed.again;
        let refuses = |why: &str| {
            once(&OTHER_SAID, || {
                let at = again.path.display();
                format!("the `stack serve` at {at} {why}: start the program again")
            });
            false
        };
        let joined = match join(&again.path, &again.program) {
            Ok(joined) => joined,
            Err(JoinError::Nobody(Errno::ACCESS | Errno::PERM)) => {
                return refuses(
                    "is not for this process's user (`stack serve --user NAME` makes it one's)",
                );
            }
            Err(JoinError::Nobody(_) | JoinError::NoAnswer(_)) => return false,
            Err(error) => return refuses(&format!("does not take the program ({error})")),
        };
        if joined.user != again.user
            || joined.reach != self.reach
            || joined.device != self.handed.device
        {
            return refuses("is another one");
        }
        // Their numbers are what children are told.
        let taken = kernel::dup3(joined.table.as_raw_fd(), self.handed.table, 0)
            .and_then(|_| rows::map(self.handed.table))
            .and_then(|()| kernel::dup3(joined.door.as_raw_fd(), self.handed.door, 0));
        if taken.is_ok() {
            say("the `stack serve` that has the stack is back: new sockets are its own");
            GONE_SAID.store(false, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    fn ask_once(
        &mut self,
        request: &Request,
        fd: Option<BorrowedFd<'_>>,
    ) -> Result<(Response, Option<OwnedFd>), Failure> {
        let may_answer_with_one =
            request.name().is_none() || matches!(request, Request::DatagramsKernel { .. });
        if self.channel.is_none() || may_answer_with_one {
            self.spares.give_up();
        }
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
                Ok(Response::Failed(errno)) => Err(Failure::Errno(errno)),
                Ok(_) if passed.cut => Err(Failure::Errno(libc::EMFILE)),
                Ok(response) => Ok((response, passed.fds.pop())),
                Err(error) => {
                    say(&format!(
                        "the stack's instance says what it cannot: {error}"
                    ));
                    Err(Failure::Errno(libc::EIO))
                }
            },
            _ => {
                self.hang_up();
                Err(Failure::Gone)
            }
        }
    }
}

enum Failure {
    Errno(i32),
    Gone,
}

impl Failure {
    fn errno(self) -> i32 {
        match self {
            Failure::Errno(errno) => errno,
            Failure::Gone => gone(),
        }
    }
}

fn gone() -> i32 {
    HAS_GONE.store(true, Ordering::Relaxed);
    once(&GONE_SAID, || {
        "the `stack serve` that has the stack is gone: calls on its sockets fail (ENETDOWN), and connections are reset".into()
    });
    libc::ENETDOWN
}

/// Not told again: another one may have come since.
fn of_one_that_is_gone() -> i32 {
    match is_gone() {
        true => libc::ENETDOWN,
        false => gone(),
    }
}

fn is_gone() -> bool {
    HAS_GONE.load(Ordering::Relaxed)
}

/// The one that has this socket is gone, whether another one is there or not; that was told.
pub fn is_lost(name: Name) -> bool {
    is_gone() && (GONE_SAID.load(Ordering::Relaxed) || !rows::is_there(name))
}

/// The peer did not end a connection that has ended.
pub fn lost() -> i32 {
    of_one_that_is_gone();
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
