//! Bytes in and out.
use crate::description::Kind;
use crate::stack::now;
use crate::state::State;
use crate::step::Step;
use crate::told::{To, Told};
use hopscope_stack_engine::{
    Engine, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketOption,
};
use nix::libc;

/// MSG_FASTOPEN; libc has it as i32 on Linux alone.
const FASTOPEN: i32 = 0x2000_0000;

/// The socket of a call, and whether it may wait.
struct Call {
    id: SocketId,
    now: bool,
    span: Option<Ns>,
}

/// SO_RCVLOWAT: at least so many bytes are waited for (sock_rcvlowat).
fn low_water(engine: &Engine, id: SocketId) -> usize {
    match engine.option(id, SocketOption::ReceiveLowWater(0)) {
        Ok(SocketOption::ReceiveLowWater(bytes)) => bytes as usize,
        _ => 1,
    }
}

impl State {
    /// `None`: the kernel's socket answers: that it is not connected.
    fn call(&self, index: u32, flags: i32, receives: bool) -> Option<Call> {
        let description = self.description(index)?;
        let Kind::Socket(socket) = &description.kind else {
            return None;
        };
        let times = socket.times;
        Some(Call {
            id: socket.id,
            now: description.nonblocking || flags & libc::MSG_DONTWAIT != 0,
            span: if receives { times.receive } else { times.send },
        })
    }

    /// Into `parts` in turn. `filled` is kept while the call waits.
    pub fn receive(
        &mut self,
        index: u32,
        parts: &mut [&mut [u8]],
        flags: i32,
        filled: &mut usize,
        told: &mut Told,
    ) -> Step {
        if self.is_datagram(index) {
            return self.receive_datagram(index, parts, flags, told);
        }
        let step = self.receive_bytes(index, parts, flags, filled);
        // Also the peer's end.
        if matches!(step, Step::Done(_)) && flags & libc::MSG_PEEK == 0 {
            self.received_some(index);
        }
        step
    }

    fn receive_bytes(
        &mut self,
        index: u32,
        parts: &mut [&mut [u8]],
        flags: i32,
        filled: &mut usize,
    ) -> Step {
        let Some(call) = self.call(index, flags, true) else {
            return Step::Pass;
        };
        if flags & libc::MSG_OOB != 0 {
            return Step::Fail(libc::EINVAL);
        }
        if flags & libc::MSG_ERRQUEUE != 0 {
            return Step::Fail(libc::EAGAIN);
        }
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Step::Fail(error),
        };
        let how = RecvFlags {
            peek: flags & libc::MSG_PEEK != 0,
            truncate: flags & libc::MSG_TRUNC != 0,
        };
        let room: usize = parts.iter().map(|part| part.len()).sum();
        let block = |filled: usize| Step::Block {
            now: call.now,
            span: call.span,
            partial: filled as i64,
            otherwise: libc::EAGAIN,
            kernel: None,
        };
        if room == 0 {
            return match stack.engine.readiness(call.id) {
                Ok(readiness) if readiness.readable => Step::Done(0),
                Ok(_) => block(0),
                Err(error) => Step::Fail(error.errno()),
            };
        }
        // What comes behind so many bytes is not waited for, nor behind the last ones.
        let is_enough = |engine: &Engine, count: usize| {
            let all = flags & libc::MSG_WAITALL != 0;
            let ended = || {
                let readiness = engine.readiness(call.id);
                readiness.is_ok_and(|is| is.error || is.read_hangup)
            };
            count >= room || !all && count >= low_water(engine, call.id) || ended()
        };
        if how.peek {
            // Each look begins at the first byte that was not read.
            let unread = stack.engine.unread_bytes(call.id).unwrap_or(0) as usize;
            let mut bytes = vec![0; room.min(unread.max(1))];
            return match stack.engine.recv(now(), call.id, &mut bytes, how) {
                Ok(count) if count > 0 && !call.now && !is_enough(&stack.engine, count) => block(0),
                Ok(count) => {
                    if !how.truncate {
                        scatter(&bytes[..count.min(room)], parts);
                    }
                    Step::Done(count as i64)
                }
                Err(SocketError::WouldBlock) => block(0),
                Err(error) => Step::Fail(error.errno()),
            };
        }
        let mut before = 0;
        for part in parts {
            let skip = filled.saturating_sub(before).min(part.len());
            before += part.len();
            let mut rest = &mut part[skip..];
            while !rest.is_empty() {
                if *filled > 0 && stack.engine.unread_bytes(call.id) == Ok(0) {
                    // Why no more comes is the next call's to tell.
                    return match is_enough(&stack.engine, *filled) {
                        true => Step::Done(*filled as i64),
                        false => block(*filled),
                    };
                }
                match stack.engine.recv(now(), call.id, rest, how) {
                    Ok(0) => return Step::Done(*filled as i64),
                    Ok(count) => {
                        *filled += count;
                        rest = &mut rest[count..];
                    }
                    Err(SocketError::WouldBlock)
                        if *filled == 0 || !is_enough(&stack.engine, *filled) =>
                    {
                        return block(*filled);
                    }
                    Err(_) if *filled > 0 => return Step::Done(*filled as i64),
                    Err(error) => return Step::Fail(error.errno()),
                }
            }
        }
        Step::Done(*filled as i64)
    }

    /// Of `parts` in turn. `taken` is kept while the call waits: until all is taken, as Linux does.
    pub fn send(
        &mut self,
        index: u32,
        parts: &[&[u8]],
        flags: i32,
        taken: &mut usize,
        to: To<'_>,
    ) -> Step {
        if self.is_datagram(index) {
            return self.send_datagram(index, parts, flags, to);
        }
        let step = self.send_bytes(index, parts, flags, taken);
        if matches!(step, Step::Done(1..)) {
            self.sent_some(index);
        }
        step
    }

    fn send_bytes(&mut self, index: u32, parts: &[&[u8]], flags: i32, taken: &mut usize) -> Step {
        let Some(call) = self.call(index, flags, false) else {
            return Step::Pass;
        };
        if flags & (libc::MSG_OOB | FASTOPEN) != 0 {
            return Step::Fail(libc::EOPNOTSUPP);
        }
        if flags & libc::MSG_MORE != 0 && self.together.waits() {
            // More is to wait for what comes, not what was sent before.
            self.flush();
        }
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Step::Fail(error),
        };
        let block = |taken: usize| Step::Block {
            now: call.now,
            span: call.span,
            partial: taken as i64,
            otherwise: libc::EAGAIN,
            kernel: None,
        };
        let last = parts.iter().rposition(|part| !part.is_empty());
        let mut before = 0;
        for (at, part) in parts.iter().enumerate() {
            let skip = taken.saturating_sub(before).min(part.len());
            before += part.len();
            let mut rest = &part[skip..];
            let how = SendFlags {
                more: flags & libc::MSG_MORE != 0 || Some(at) != last,
            };
            while !rest.is_empty() {
                match stack.engine.send(now(), call.id, rest, how) {
                    Ok(count) => {
                        *taken += count;
                        rest = &rest[count..];
                    }
                    Err(SocketError::WouldBlock) => return block(*taken),
                    Err(_) if *taken > 0 => return Step::Done(*taken as i64),
                    Err(error) => return Step::Fail(error.errno()),
                }
            }
        }
        if before == 0 {
            // Nothing is sent, and yet it fails where a byte would.
            let how = SendFlags::default();
            return match stack.engine.send(now(), call.id, &[], how) {
                Ok(_) => Step::Done(0),
                Err(SocketError::WouldBlock) => block(0),
                Err(error) => Step::Fail(error.errno()),
            };
        }
        Step::Done(*taken as i64)
    }

    /// FIONREAD, SIOCOUTQ, SIOCOUTQNSD. `None`: the kernel's to answer.
    pub fn queued(&mut self, index: u32, request: u64) -> Option<Result<i32, i32>> {
        const SIOCOUTQNSD: u64 = 0x894b;
        let description = self.description(index)?;
        let (id, kernel) = (description.socket()?.id, description.kernel_part());
        let stack = match self.own() {
            Ok(stack) => stack,
            Err(error) => return Some(Err(error)),
        };
        let unsent = stack.engine.unacknowledged_bytes(id);
        let bytes = match request {
            libc::FIONREAD => stack.engine.unread_bytes(id),
            libc::TIOCOUTQ => unsent.map(|(all, _)| all),
            SIOCOUTQNSD => unsent.map(|(_, unsent)| unsent),
            _ => return None,
        };
        if bytes == Ok(0) && kernel.is_some() && self.is_datagram(index) {
            return None;
        }
        Some(bytes.map(|bytes| bytes as i32).map_err(SocketError::errno))
    }

    /// What recvmsg tells by TCP_CM_INQ.
    pub fn inq(&mut self, index: u32) -> Option<u32> {
        let socket = self.description(index)?.socket()?;
        let (id, inq) = (socket.id, socket.inq);
        let stack = self.owned_stack().filter(|_| inq)?;
        let unread = stack.engine.unread_bytes(id).ok()?;
        let ended = stack.engine.readiness(id).ok()?.read_hangup;
        Some(unread.max(u32::from(ended)))
    }
}

pub fn scatter(mut bytes: &[u8], parts: &mut [&mut [u8]]) {
    for part in parts {
        let (now, rest) = bytes.split_at(bytes.len().min(part.len()));
        part[..now.len()].copy_from_slice(now);
        bytes = rest;
    }
}
