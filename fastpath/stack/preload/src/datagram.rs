//! Datagrams in. A socket that is at an address of the stack, or is connected to where it leads, is the stack's alone. One that is at
//! every address is also the kernel's: it sends each datagram by whose the destination is, and receives from both.
use crate::control::{self, Wants};
use crate::data::scatter;
use crate::description::{Description, Kind};
use crate::kernel;
use crate::state::State;
use crate::step::Step;
use crate::told::Told;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{RecvFlags, SocketError, SocketId, SocketKind};
use nix::libc;

/// The kernel is asked first once in so many calls, so that neither side waits for the other.
const KERNEL_TURN: u32 = 16;

impl State {
    pub fn is_datagram(&self, index: u32) -> bool {
        self.description(index).is_some_and(|d| d.is_datagram())
    }

    pub fn receive_datagram(
        &mut self,
        index: u32,
        parts: &mut [&mut [u8]],
        flags: i32,
        told: &mut Told,
    ) -> Step {
        let Some(description) = self.description_mut(index) else {
            return Step::Pass;
        };
        let waits = !description.nonblocking && flags & libc::MSG_DONTWAIT == 0;
        let kernel = description.fds.first().copied();
        let (socket, times) = match &mut description.kind {
            Kind::Epoll(_) => return Step::Pass,
            // Another thread's call may make it the stack's while this one waits.
            Kind::Undecided(undecided) if waits => (None, undecided.times),
            Kind::Undecided(_) => return Step::Pass,
            Kind::Socket(socket) => {
                socket.calls = socket.calls.wrapping_add(1);
                (Some((socket.id, socket.wants, socket.calls)), socket.times)
            }
        };
        let kernel = kernel.filter(|_| socket.is_none() || description.kernel_part().is_some());
        let block = Step::Block {
            now: !waits,
            span: times.receive,
            partial: 0,
            otherwise: libc::EAGAIN,
            kernel,
        };
        let Some((id, wants, calls)) = socket else {
            return of_kernel(kernel, parts, flags, told).unwrap_or(block);
        };
        if flags & libc::MSG_ERRQUEUE != 0 {
            return Step::Fail(libc::EAGAIN);
        }
        let kernel_first = kernel.is_some() && calls % KERNEL_TURN == 0;
        if kernel_first && let Some(step) = of_kernel(kernel, parts, flags, told) {
            return step;
        }
        if let Some(step) = self.of_engine(id, wants, parts, flags, told) {
            return step;
        }
        if !kernel_first && let Some(step) = of_kernel(kernel, parts, flags, told) {
            return step;
        }
        let readiness = self.owned_stack().map(|stack| stack.engine.readiness(id));
        let shut = matches!(readiness, Some(Ok(readiness)) if readiness.read_hangup);
        if shut && waits { Step::Done(0) } else { block }
    }

    /// `None`: it has none now.
    fn of_engine(
        &mut self,
        id: SocketId,
        wants: Wants,
        parts: &mut [&mut [u8]],
        flags: i32,
        told: &mut Told,
    ) -> Option<Step> {
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Some(Step::Fail(error)),
        };
        let how = RecvFlags {
            peek: flags & libc::MSG_PEEK != 0,
            truncate: false,
        };
        let room: usize = parts.iter().map(|part| part.len()).sum();
        let received = match parts {
            [one] => stack.engine.recv_datagram(id, one, how),
            parts => {
                let mut bytes = vec![0; room.min(1 << 16)];
                let received = stack.engine.recv_datagram(id, &mut bytes, how);
                if let Ok(inbound) = received {
                    bytes.truncate(inbound.len);
                    scatter(&bytes, parts);
                }
                received
            }
        };
        let inbound = match received {
            Ok(inbound) => inbound,
            Err(SocketError::WouldBlock) => return None,
            Err(error) => return Some(Step::Fail(error.errno())),
        };
        told.from = address::to_bytes(inbound.peer);
        told.flags = if inbound.len > room {
            libc::MSG_TRUNC
        } else {
            0
        };
        told.control.clear();
        let index = self.handed.inline().map_or(0, |inline| inline.port.index);
        let interface = (index, &self.handed.reach.addresses[..]);
        control::tell(&inbound, wants, interface, told);
        let whole = flags & libc::MSG_TRUNC != 0;
        let count = if whole {
            inbound.len
        } else {
            inbound.len.min(room)
        };
        Some(Step::Done(count as i64))
    }
}

impl Description {
    pub fn is_datagram(&self) -> bool {
        match &self.kind {
            Kind::Undecided(undecided) => undecided.kind == SocketKind::Udp,
            Kind::Socket(socket) => socket.kind == SocketKind::Udp,
            Kind::Epoll(_) => false,
        }
    }
}

/// `None`: the kernel's socket has nothing now.
fn of_kernel(
    fd: Option<i32>,
    parts: &mut [&mut [u8]],
    flags: i32,
    told: &mut Told,
) -> Option<Step> {
    let received = kernel::receive(fd?, parts, flags | libc::MSG_DONTWAIT, told.control_room);
    match received {
        Ok(message) => {
            told.from = message.from;
            told.flags = message.flags;
            told.control = message.control;
            Some(Step::Done(message.count))
        }
        Err(libc::EAGAIN) => None,
        Err(error) => Some(Step::Fail(error)),
    }
}
