//! The engine on its port: a turn is a piece of everything that there is to do, without waiting.
use crate::kernel;
use crate::say::say;
use crate::table::{self, Entry};
use hopscope_netio::{Outgoing, PacketIo, PortError};
use hopscope_stack_engine::{ConfigError, Engine, Ns};
use hopscope_stack_instance::handed::Handed;
use hopscope_stack_instance::{LinkMtu, offload};
use nix::libc;
use nix::time::{ClockId, clock_gettime};
use std::os::fd::{AsRawFd, OwnedFd};

/// Frames that are received before others have their turn.
const BURST: usize = 64;
/// Of packets to the stack's own addresses in one call; the rest is the next one's, or the ticker's.
const ROUNDS: usize = 64;
/// How often the device is asked for its MTU, since segments that the kernel cuts are never refused for their length, and whether it is up,
/// which a port that sends nothing does not tell.
const ASK_EVERY: Ns = Ns::from_ms(1_000);

pub struct Stack {
    pub engine: Engine,
    port: Box<dyn PacketIo>,
    device: String,
    /// Frames wait for room in the port.
    pub is_full: bool,
    /// Counts turns in which something was done.
    pub busy_turns: u64,
    mtu: LinkMtu,
    ask_at: Ns,
    mtu_unanswered: bool,
    link: Link,
}

/// What the port's device is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Up,
    /// Nothing comes or goes until it is up again, which it is asked for every [`ASK_EVERY`].
    Down,
    /// For ever.
    Lost,
}

/// The kernel's CLOCK_MONOTONIC: the same in a child.
pub fn now() -> Ns {
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
    Ns(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error("the stack is in another process")]
    Elsewhere,
}

impl Stack {
    pub fn new(handed: &Handed, socket: OwnedFd, seed: [u8; 32]) -> Result<Stack, StackError> {
        let inline = handed.inline().ok_or(StackError::Elsewhere)?;
        let (mtu, most) = (inline.engine.mtu, inline.engine.mtu_most);
        Ok(Stack {
            engine: Engine::new(inline.engine.config(&handed.reach, seed))?,
            port: inline.port.adopt(socket)?,
            device: inline.port.device.clone(),
            is_full: false,
            busy_turns: 0,
            mtu: LinkMtu::new(mtu, most),
            ask_at: Ns(0),
            mtu_unanswered: false,
            link: Link::Up,
        })
    }

    /// Others have read from the port since this process did.
    pub fn replace_port(&mut self, handed: &Handed, socket: OwnedFd) -> Result<(), StackError> {
        let inline = handed.inline().ok_or(StackError::Elsewhere)?;
        let port = inline.port.adopt(socket)?;
        if let Some(old) = self.port_fd() {
            // Its owner closes it, which the program could not.
            table::set(old, Entry::Kernel);
        }
        self.port = port;
        Ok(())
    }

    pub fn port_fd(&self) -> Option<i32> {
        self.port.wait_fd().map(|fd| fd.as_raw_fd())
    }

    /// What to wait on: nothing where its device is not up, which would make it ready all the time.
    pub fn wait_fd(&self) -> Option<i32> {
        self.port_fd().filter(|_| self.link == Link::Up)
    }

    /// When there is something to do without a frame.
    pub fn due(&self) -> Option<Ns> {
        let looks = (self.link == Link::Down).then_some(self.ask_at);
        [self.engine.poll_at(), looks].into_iter().flatten().min()
    }

    /// Frames in, timers; false: there was nothing to do.
    pub fn receive(&mut self, now: Ns) -> bool {
        let engine = &mut self.engine;
        let received = self.port.receive(BURST, &mut |frame| {
            engine.receive(now, frame.bytes, offload::received(frame.offload));
        });
        let mut busy = match received {
            Ok(count) => count > 0,
            Err(error) => self.fail(error),
        };
        if self.engine.poll_at().is_some_and(|at| at <= now) {
            self.engine.advance(now);
            busy = true;
        }
        self.busy_turns += u64::from(busy);
        busy
    }

    /// Frames out, all that the port takes.
    pub fn transmit(&mut self, now: Ns) {
        if self.ask_at <= now {
            self.ask_at = now + ASK_EVERY;
            self.mind_the_device();
            self.follow_mtu(now);
        }
        loop {
            let engine = &mut self.engine;
            let sent = self.port.send(BURST, &mut |slot| {
                let frame = engine.transmit(now, slot);
                frame.map_or_else(Outgoing::default, offload::outgoing)
            });
            let flushed = sent.and_then(|sent| Ok((sent, self.port.flush()?)));
            match flushed {
                Ok((sent, waiting)) => {
                    self.is_full = waiting > 0;
                    let more = self.port.takes_less() && self.follow_mtu(now);
                    if (sent < BURST || self.is_full) && !more {
                        return;
                    }
                }
                Err(error) => {
                    self.fail(error);
                    return;
                }
            }
        }
    }

    /// The same, and what goes to the stack's own sockets arrives there, answers, too, as on the kernel's loopback.
    /// True: there was such a packet.
    pub fn transmit_all(&mut self, now: Ns) -> bool {
        self.transmit(now);
        let mut rounds = 0;
        while self.engine.has_looped() && rounds < ROUNDS {
            self.engine.advance(now);
            self.transmit(now);
            rounds += 1;
        }
        rounds > 0
    }

    fn mind_the_device(&mut self) {
        if self.link == Link::Lost {
            return;
        }
        match (self.link, self.port.is_up()) {
            (Link::Up, Ok(false)) => {
                let name = self.device.clone();
                self.breaks(PortError::Down { name });
            }
            (Link::Down, Ok(true)) => {
                self.link = Link::Up;
                if let Some(port) = self.port_fd() {
                    // Takes its error, with which it would be ready for ever.
                    let _ = kernel::option(port, libc::SOL_SOCKET, libc::SO_ERROR);
                }
                say(&format!("{} is up again", self.device));
            }
            (_, Ok(_)) => {}
            (_, Err(error)) => self.breaks(error),
        }
    }

    /// Asks the device for its MTU; false: it is the same, or there is no answer.
    pub fn follow_mtu(&mut self, now: Ns) -> bool {
        if self.link == Link::Lost {
            return false;
        }
        match self.mtu.read(&mut *self.port) {
            Ok(Some(mtu)) => {
                self.engine.set_mtu(now, mtu);
                true
            }
            Ok(None) => false,
            Err(error) => {
                if !self.mtu_unanswered {
                    self.mtu_unanswered = true;
                    say(&format!("{error}: segments stay as they are"));
                }
                false
            }
        }
    }

    fn fail(&mut self, error: PortError) -> bool {
        if self.link == Link::Up {
            self.breaks(error);
        }
        false
    }

    fn breaks(&mut self, error: PortError) {
        // A device that is deleted is first heard of as one that is down.
        let error = match self.port.mtu() {
            Err(gone @ PortError::Gone { .. }) => gone,
            _ => error,
        };
        let (link, then) = match error {
            PortError::Down { .. } => (Link::Down, "nothing comes or goes until it is up again"),
            _ => (
                Link::Lost,
                "the program's connections end by their own timeouts: start it again then",
            ),
        };
        self.link = link;
        say(&format!("{error}; {then}"));
    }
}
