//! Connections of a listener: out of the engine's queue, or the kernel's, into the pair that its program accepts from.
use super::names::Of;
use super::table::Phase;
use super::wire::Accepted;
use super::{LATER, Programs};
use crate::Ns;
use crate::sockets::Sockets;

impl Programs {
    /// A listener whose pair may take more.
    pub(super) fn push_on(&mut self, sockets: &mut Sockets<'_>, key: u64) {
        let Some(listener) = self.listeners.get(key) else {
            return;
        };
        if listener.has_room() {
            self.accept(sockets, key);
        } else if listener.is_stuck() {
            self.later = Some(sockets.now + LATER);
        }
    }

    /// Connections of the engine's listener, while its pair takes them.
    pub(super) fn accept(&mut self, sockets: &mut Sockets<'_>, key: u64) {
        loop {
            let Some(listener) = self.listeners.get(key) else {
                return;
            };
            let (of, ipv6) = (Of::Listener(listener.name), listener.ipv6);
            if !listener.can_push() {
                return;
            }
            let listener = listener.id;
            if !sockets
                .engine
                .readiness(listener)
                .is_ok_and(|ready| ready.readable)
            {
                break;
            }
            // Before a connection is taken out of the engine's queue: it stays there while there is nothing to put it into.
            let Ok(pair) = self.pair() else {
                self.later = Some(sockets.now + LATER);
                return;
            };
            let Ok((id, _)) = sockets.engine.accept(listener) else {
                break;
            };
            self.counts.accepted += 1;
            match self.add(sockets, of, (id, ipv6), Phase::Connected, pair) {
                Ok((name, connection, fd)) => {
                    if let Some(listener) = self.listeners.get(key) {
                        listener.push(Accepted::Ours(name), fd);
                        if listener.is_stuck() {
                            self.later = Some(sockets.now + LATER);
                        }
                    }
                    self.serve(sockets, connection);
                }
                Err(_) => {
                    let _ = sockets.engine.abort(sockets.now, id);
                    self.counts.failed += 1;
                }
            }
        }
        self.accept_from_kernel(sockets.now, key);
    }

    pub(super) fn accept_from_kernel(&mut self, now: Ns, key: u64) {
        if let Some(listener) = self.listeners.get(key) {
            listener.accept_from_kernel();
            if listener.is_stuck() {
                self.counts.descriptors_missing += 1;
                self.later = Some(now + LATER);
            }
        }
    }
}
