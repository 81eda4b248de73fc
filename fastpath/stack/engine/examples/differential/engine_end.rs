//! An end that is a socket of the engine.
use crate::program::Call;
use hopscope_stack_engine::{
    Engine, HowToShut, Linger, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketOption,
};

pub fn call(
    engine: &mut Engine,
    now: Ns,
    end: &mut Option<SocketId>,
    call: Call,
    sent: &mut u64,
) -> String {
    let Some(id) = *end else {
        return "closed".into();
    };
    match call {
        Call::Send(count) => {
            let bytes = super::wires::bytes(*sent, count);
            match engine.send(now, id, &bytes, SendFlags::default()) {
                Ok(count) => {
                    *sent += count as u64;
                    format!("{count}")
                }
                Err(error) => errno(error),
            }
        }
        Call::Recv(count) => recv(engine, now, id, count, false),
        Call::Peek(count) => recv(engine, now, id, count, true),
        Call::ShutRead => done(engine.shutdown(now, id, HowToShut::Read)),
        Call::ShutWrite => done(engine.shutdown(now, id, HowToShut::Write)),
        Call::ShutBoth => done(engine.shutdown(now, id, HowToShut::Both)),
        Call::Close => {
            *end = None;
            done(engine.close(now, id))
        }
        Call::Reset => {
            let set = engine.set_option(now, id, SocketOption::Linger(Linger::Reset));
            *end = None;
            done(set.and_then(|()| engine.close(now, id)))
        }
        Call::Error => match engine.take_error(id) {
            Ok(error) => format!("SO_ERROR {}", error.map_or(0, SocketError::errno)),
            Err(error) => errno(error),
        },
        Call::Poll => match engine.readiness(id) {
            Ok(r) => super::wires::flags(r.readable, r.writable, r.read_hangup, r.hangup, r.error),
            Err(error) => errno(error),
        },
        Call::Unread => match engine.unread_bytes(id) {
            Ok(count) => format!("unread {count}"),
            Err(error) => errno(error),
        },
    }
}

fn recv(engine: &mut Engine, now: Ns, id: SocketId, count: usize, peek: bool) -> String {
    let mut into = vec![0; count];
    let flags = RecvFlags {
        peek,
        ..RecvFlags::default()
    };
    match engine.recv(now, id, &mut into, flags) {
        Ok(count) => super::wires::show(&into[..count]),
        Err(error) => errno(error),
    }
}

fn done(result: Result<(), SocketError>) -> String {
    match result {
        Ok(()) => "0".into(),
        Err(error) => errno(error),
    }
}

fn errno(error: SocketError) -> String {
    format!("errno {}", error.errno())
}
