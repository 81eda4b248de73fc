//! Programs that come and go: their doors, and the channels of their processes.
use super::calls::Answer;
use super::passing::{self, RecvFlags, SendFlags};
use super::wire::{self, Hello, MESSAGE_MAX, Response, Welcome};
use super::{ATTACH, CHANNEL, Channel, DOOR, LATER, Programs, Run};
use crate::Ns;
use crate::sockets::Sockets;
use hopscope_eventloop::Token;
use hopscope_serving::endpoint::Endpoint;
use nix::libc;
use nix::sys::epoll::EpollFlags;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketType};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Programs at a time, and processes that ask.
const RUNS_MAX: usize = 256;
const CHANNELS_MAX: usize = 4096;

impl Programs {
    pub(super) fn attach(&mut self, now: Ns) {
        loop {
            let door = match self.endpoint.as_ref().map(Endpoint::accept).transpose() {
                Ok(Some(Some(door))) => door,
                Ok(_) => return,
                // No descriptor: it waits, and is not told of meanwhile.
                Err(_) => {
                    self.counts.descriptors_missing += 1;
                    self.watch_door(EpollFlags::empty());
                    self.later = Some(now + LATER);
                    return;
                }
            };
            if self.runs.len() >= RUNS_MAX {
                self.refuse(&door, "as many programs are attached as may be");
                continue;
            }
            if let Err(error) = door.set_nonblocking(true) {
                self.refuse(&door, &format!("its door: {error}"));
                continue;
            }
            let run = Run {
                door,
                is_known: false,
                is_gone: false,
                channels: 0,
            };
            let key = self.runs.insert(run);
            let (Some(run), Some(poll)) = (self.runs.get(key), &self.poll) else {
                continue;
            };
            if poll
                .add(&run.door, Token::new(DOOR, key), EpollFlags::EPOLLIN)
                .is_err()
            {
                self.runs.remove(key);
                self.counts.programs_refused += 1;
            }
        }
    }

    fn refuse(&mut self, door: &UnixStream, why: &str) {
        self.counts.programs_refused += 1;
        let refused = wire::to_bytes(&Welcome::Refused(why.into()));
        // Who does not wait for it is not told.
        let _ = passing::send(door, &refused, &[], SendFlags::DONTWAIT);
    }

    /// Whoever waits there is told of again.
    pub(super) fn open_the_door(&mut self) {
        self.watch_door(EpollFlags::EPOLLIN);
    }

    fn watch_door(&self, wants: EpollFlags) {
        if let (Some(poll), Some(fd)) = (&self.poll, self.endpoint.as_ref().and_then(Endpoint::fd))
        {
            // Of a descriptor that is watched.
            let _ = poll.modify(fd, Token::of(ATTACH), wants);
        }
    }

    /// A message at the door.
    pub(super) fn door(&mut self, key: u64) {
        let Some(run) = self.runs.get(key) else {
            return;
        };
        let mut bytes = [0; 4096];
        // Behind the hello each message is one byte.
        let most = if run.is_known { 1 } else { bytes.len() };
        let passed = passing::receive(&run.door, &mut bytes[..most], RecvFlags::DONTWAIT);
        let passed = match passed {
            Ok(passed) if passed.len > 0 => passed,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // The last process of it is gone.
            _ => return self.leave(key),
        };
        if !run.is_known {
            return self.hello(key, &bytes[..passed.len]);
        }
        // One that was lost on its way.
        self.counts.requests_refused += u64::from(passed.cut);
        for fd in passed.fds {
            if self.channels.len() >= CHANNELS_MAX || !is_channel(&fd) {
                self.counts.requests_refused += 1;
                continue;
            }
            let waits = false;
            let channel = self.channels.insert(Channel {
                run: key,
                fd,
                waits,
            });
            let (Some(added), Some(poll)) = (self.channels.get(channel), &self.poll) else {
                continue;
            };
            let token = Token::new(CHANNEL, channel);
            if poll.add(&added.fd, token, EpollFlags::EPOLLIN).is_err() {
                self.channels.remove(channel);
            } else if let Some(run) = self.runs.get(key) {
                run.channels += 1;
            }
        }
    }

    fn hello(&mut self, key: u64, bytes: &[u8]) {
        let version = env!("CARGO_PKG_VERSION");
        let welcome = match wire::from_bytes::<Hello>(bytes) {
            Ok(hello) if hello.version == version => Welcome::Here {
                reach: self.offer.reach.clone(),
                device: self.offer.device.clone(),
            },
            Ok(hello) => Welcome::Refused(format!(
                "the instance is version {version}, the program's `hopscope` {}",
                hello.version
            )),
            Err(error) => Welcome::Refused(error),
        };
        let is_refused = matches!(welcome, Welcome::Refused(_));
        let Some(run) = self.runs.get(key) else {
            return;
        };
        let file = [self.table.file()];
        let fds = if is_refused { &[][..] } else { &file[..] };
        let sent = passing::send(
            &run.door,
            &wire::to_bytes(&welcome),
            fds,
            SendFlags::DONTWAIT,
        );
        run.is_known = true;
        if is_refused || sent.is_err() {
            self.counts.programs_refused += 1;
            return self.leave(key);
        }
        self.counts.programs += 1;
    }

    /// Its sockets go on to their ends by themselves: their pairs say when, and what was sent is carried on until then.
    fn leave(&mut self, key: u64) {
        let Some(run) = self.runs.get(key) else {
            return;
        };
        let _ = run.door.shutdown(std::net::Shutdown::Both);
        if let Some(poll) = &self.poll {
            let _ = poll.remove(&run.door);
        }
        run.is_gone = true;
        self.remove_if_over(key);
    }

    fn remove_if_over(&mut self, key: u64) {
        let is_over = self
            .runs
            .get(key)
            .is_some_and(|run| run.is_gone && run.channels == 0);
        if is_over {
            self.runs.remove(key);
            self.names.forget_program(key);
            self.tell_others_who_left(key);
        }
    }

    fn end_channel(&mut self, key: u64) {
        if let Some(channel) = self.channels.remove(key) {
            if let Some(run) = self.runs.get(channel.run) {
                run.channels -= 1;
            }
            self.remove_if_over(channel.run);
        }
    }

    pub(super) fn request(&mut self, sockets: &mut Sockets<'_>, key: u64) {
        let Some(channel) = self.channels.get(key) else {
            return;
        };
        if channel.waits {
            // Of one that waits only its end is told.
            return self.end_channel(key);
        }
        let run = channel.run;
        let mut bytes = vec![0; MESSAGE_MAX];
        let mut passed = match passing::receive(&channel.fd, &mut bytes, RecvFlags::DONTWAIT) {
            Ok(passed) if passed.len > 0 => passed,
            Err(Errno::AGAIN | Errno::INTR) => return,
            _ => return self.end_channel(key),
        };
        let answered = match wire::from_bytes(&bytes[..passed.len]) {
            // A descriptor that belongs to the request was lost on its way.
            Ok(_) if passed.cut => Some(Err(libc::EMFILE)),
            Ok(request) => self.begin(sockets, (key, run), request, passed.fds.pop()),
            Err(_) => Some(Err(libc::EPROTO)),
        };
        if let Some(answer) = answered {
            self.tell(key, answer);
        }
    }

    /// Nothing more is taken from it before it is told.
    pub(super) fn hold_channel(&mut self, key: u64) {
        if let (Some(channel), Some(poll)) = (self.channels.get(key), &self.poll) {
            channel.waits = true;
            // Of a descriptor that is watched.
            let _ = poll.modify(&channel.fd, Token::new(CHANNEL, key), EpollFlags::empty());
        }
    }

    pub(super) fn tell(&mut self, key: u64, answered: Answer) {
        let (response, fd) = answered.unwrap_or_else(|errno| {
            self.counts.requests_refused += 1;
            (Response::Failed(errno), None)
        });
        let Some(channel) = self.channels.get(key) else {
            return;
        };
        if let (true, Some(poll)) = (std::mem::take(&mut channel.waits), &self.poll) {
            let _ = poll.modify(&channel.fd, Token::new(CHANNEL, key), EpollFlags::EPOLLIN);
        }
        let fds: Vec<_> = fd.as_ref().map(AsFd::as_fd).into_iter().collect();
        let sent = passing::send(
            &channel.fd,
            &wire::to_bytes(&response),
            &fds,
            SendFlags::DONTWAIT,
        );
        // Who does not read its answers asks no more.
        if sent.is_err() {
            self.end_channel(key);
        }
    }
}

/// A channel's end: a socket whose messages are whole.
fn is_channel(fd: &OwnedFd) -> bool {
    let fd = fd.as_fd();
    sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(fd) == Ok(SocketType::SEQPACKET)
}
