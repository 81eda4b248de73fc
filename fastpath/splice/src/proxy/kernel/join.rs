//! How a connection's sockets come into the kernel's maps, with bytes that arrived before.
use super::{Engine, contract};
use crate::proxy::ProxyError;
use crate::proxy::share::Share;
use crate::socket_options;
use hopscope_bpf::object;
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};

/// Why user space copies from the beginning, one way at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum NotJoined {
    /// A sockmap accepts sockets only while neither end has sent FIN.
    Ended,
    Full,
    Refused,
}

/// What came of it: the directions that the kernel has, by the socket at which they begin.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Joined {
    pub(in crate::proxy) shares: [Option<Share>; 2],
    pub(in crate::proxy) not: Option<NotJoined>,
    /// Of both sockets where at least one is in a map.
    pub(in crate::proxy) cookies: Option<[u64; 2]>,
}

impl Engine {
    /// User space must have read and sent nothing: what has arrived by now then goes by the kernel too,
    /// in its order.
    pub(in crate::proxy) fn join(
        &mut self,
        streams: &[TcpStream; 2],
    ) -> Result<Joined, ProxyError> {
        let mut joined = Joined::default();
        if self.joined >= self.most {
            joined.not = Some(NotJoined::Full);
            return Ok(joined);
        }
        let cookie = |stream: &TcpStream| {
            socket_options::cookie(stream)
                .map_err(ProxyError::system("asking for a socket's number"))
        };
        let cookies = [cookie(&streams[0])?, cookie(&streams[1])?];
        self.joined += 1;
        joined.cookies = Some(cookies);
        let targets = [0, 1].map(|side| put(&self.targets, cookies[side], &streams[side]));
        for side in [0, 1] {
            let arriving = targets[1 - side].and_then(|()| {
                // The record first: the verdict runs as soon as the socket is there.
                let way = contract::way(cookies[1 - side], side == 1);
                let key = cookies[side].to_ne_bytes();
                let recorded = self.ways.update(&key, &way, MapFlags::ANY);
                recorded.map_err(|error| why(&error))?;
                self.attach_brake(&streams[side])?;
                put(&self.arriving, cookies[side], &streams[side])
            });
            match arriving {
                Ok(()) => joined.shares[side] = Some(share(cookies[side])),
                Err(not) => joined.not = Some(not),
            }
        }
        #[cfg(test)]
        if self.without.kick {
            return Ok(joined);
        }
        for side in [0, 1] {
            if joined.shares[side].is_some() {
                // A socket that was reset meanwhile says so when it is watched.
                let _ = socket_options::look_at_received(&streams[side]);
            }
        }
        Ok(joined)
    }
}

impl Engine {
    fn attach_brake(&self, stream: &TcpStream) -> Result<(), NotJoined> {
        #[cfg(test)]
        if self.without.brake {
            return Ok(());
        }
        let program = object::program(&self.object, "proxy_brake");
        let program = program.map_err(|_| NotJoined::Refused)?;
        // Refused where the socket has a filter that is locked (SO_LOCK_FILTER).
        socket_options::attach_filter(stream, program.as_fd()).map_err(|_| NotJoined::Refused)
    }
}

fn put(map: &MapHandle, cookie: u64, stream: &TcpStream) -> Result<(), NotJoined> {
    let fd = u64::from(stream.as_raw_fd().unsigned_abs());
    map.update(&cookie.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| why(&error))
}

/// `sock_map_sk_state_allowed` of net/core/sock_map.c: EOPNOTSUPP unless the connection is established.
fn why(error: &libbpf_rs::Error) -> NotJoined {
    match error.kind() {
        ErrorKind::Unsupported => NotJoined::Ended,
        ErrorKind::TooBig | ErrorKind::OutOfMemory => NotJoined::Full,
        _ => NotJoined::Refused,
    }
}

fn share(cookie: u64) -> Share {
    Share {
        cookie,
        received: 0,
        sent: 0,
        said: 0,
        is_user: false,
        cleared: 0,
    }
}
