//! The event loop of one server thread.
use super::peer::{CHUNK, Next, Peer, Shared};
use super::{Counters, Service};
use crate::connections::LoadError;
use crate::connections::pattern::Pattern;
use crate::connections::tally::Cause;
use crate::connections::wait::{LISTENER, Waiter};
use hopscope_eventloop::Slab;
use nix::sys::epoll::EpollFlags;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) fn run(
    listener: TcpListener,
    service: Service,
    counters: &Counters,
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    listener
        .set_nonblocking(true)
        .map_err(|e| LoadError::system("the listener")(Cause::of(&e).errno()))?;
    let mut waiter = Waiter::new(1024)?;
    let watch = |errno| LoadError::system("cannot watch a socket")(errno);
    waiter.listen(&listener).map_err(watch)?;
    let seed = match service {
        Service::Sink { check } => check,
        Service::Source { seed } => Some(seed),
        _ => None,
    };
    let mut buffer = vec![0; CHUNK];
    let shared = Shared {
        service,
        pattern: seed.map(|seed| Pattern::new(seed, CHUNK)),
        counters,
    };
    let mut peers: Slab<Peer> = Slab::default();
    while !stop.load(Ordering::Relaxed) {
        let ready = waiter.wait(None)?;
        for at in 0..ready {
            let token = waiter.ready(at).token;
            if token == LISTENER {
                while let Some(stream) = accept(&listener, counters) {
                    let first = match service {
                        Service::Source { .. } => EpollFlags::EPOLLOUT,
                        _ => EpollFlags::EPOLLIN,
                    };
                    let mut peer = Peer::new(stream);
                    peer.waits_for_room = first == EpollFlags::EPOLLOUT;
                    let key = peers.insert(peer);
                    if let Some(peer) = peers.get(key) {
                        waiter.add(&peer.stream, key, first).map_err(watch)?;
                    }
                }
                continue;
            }
            let key = token.key;
            let Some(peer) = peers.get(key) else {
                continue;
            };
            let next = peer.ready(&shared, &mut buffer);
            if next == Next::End {
                peers.remove(key);
                continue;
            }
            let for_room = next == Next::Write;
            if for_room != peer.waits_for_room {
                peer.waits_for_room = for_room;
                let flags = if for_room {
                    EpollFlags::EPOLLOUT
                } else {
                    EpollFlags::EPOLLIN
                };
                waiter.change(&peer.stream, key, flags).map_err(watch)?;
            }
        }
    }
    Ok(())
}

/// The next connection that waits; `None` when there is none, or none can be had.
fn accept(listener: &TcpListener, counters: &Counters) -> Option<TcpStream> {
    let accepted = listener.accept().and_then(|(stream, _)| {
        stream.set_nonblocking(true)?;
        Ok(stream)
    });
    match accepted {
        Ok(stream) => {
            Counters::add(&counters.accepted, 1);
            Some(stream)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(_) => {
            Counters::add(&counters.accept_failed, 1);
            // The connection stays in the queue and the listener ready: without a pause this would
            // spin, and take the processor from those that could give a descriptor back.
            std::thread::sleep(Duration::from_millis(1));
            None
        }
    }
}
