//! The running BPF programs, and their interface to user space.
use super::contract::{
    Config, KernelCounts, Notice, PASSED_AT, PENDING, QUESTION_BYTES, QUESTION_COOKIE_AT,
    QUESTION_SENT_AT,
};
use super::{addresses, programs};
use crate::echo::share::{Drained, Share};
use crate::echo::{EchoError, KernelPlan};
use crate::socket_options;
use hopscope_bpf::{BpfError, Ring, object, per_cpu, test_run};
use hopscope_eventloop::{Poll, Token};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};

pub(in crate::echo) struct Engine {
    object: Object,
    connections: MapHandle,
    events: MapHandle,
    ring: Ring,
    told: Arc<Mutex<Vec<Notice>>>,
    /// As long as it lives new connections are seen.
    _sockops: Link,
    #[cfg(test)]
    without: super::Without,
}

/// Reads the counters, also when the programs are gone.
pub(in crate::echo) struct Reader(MapHandle);

impl Engine {
    /// For a socket that is bound and does not listen yet: no connection may be missed.
    pub(in crate::echo) fn load(
        plan: &KernelPlan,
        socket: impl AsFd,
        address: SocketAddr,
        v6_only: bool,
    ) -> Result<Engine, EchoError> {
        let netns = socket_options::netns_cookie(socket);
        let config = Config {
            netns_cookie: netns.map_err(EchoError::system(
                "reading the network namespace's cookie (Linux 5.14)",
            ))?,
            address,
            v6_only,
            enrol_clients: plan.local_clients,
            egress_limit: plan.egress_limit,
            ingress_limit: plan.ingress_limit,
        };
        let object = programs::load(&config)?;
        let only = (!address.ip().is_unspecified()).then_some(address.ip());
        let left_out = addresses::tell(&object::map_handle(&object, "addresses")?, only)?;
        if left_out > 0 {
            log::warn!(
                "no room for {left_out} addresses of this machine: their clients are served as remote ones"
            );
        }
        let events = object::map_handle(&object, "events")?;
        let told = Arc::new(Mutex::new(Vec::new()));
        let ring = ring(&events, told.clone())?;
        Ok(Engine {
            connections: object::map_handle(&object, "connections")?,
            _sockops: programs::attach(&object, plan)?,
            object,
            events,
            ring,
            told,
            #[cfg(test)]
            without: plan.without,
        })
    }

    pub(in crate::echo) fn reader(&self) -> Result<Reader, EchoError> {
        Ok(Reader(object::map_handle(&self.object, "counts")?))
    }

    /// Has it told when there are notices.
    pub(in crate::echo) fn watch(&self, poll: &Poll, token: Token) -> Result<(), Errno> {
        poll.add(&self.events, token, EpollFlags::EPOLLIN)
    }

    pub(in crate::echo) fn notices(&self) -> Result<Vec<Notice>, EchoError> {
        self.ring.consume(usize::MAX)?;
        let mut told = self.told.lock().unwrap_or_else(|e| e.into_inner());
        Ok(std::mem::take(&mut *told))
    }

    /// Of a connection that was just accepted; `None` where user space is to echo all of it.
    pub(in crate::echo) fn take_over(
        &self,
        stream: &TcpStream,
    ) -> Result<Option<Share>, EchoError> {
        let cookie = socket_options::cookie(stream);
        let cookie = cookie.map_err(EchoError::system("asking for a socket's number"))?;
        if self.record(cookie)?.is_none() {
            return Ok(None);
        }
        #[cfg(test)]
        let kicks = !self.without.kick;
        #[cfg(not(test))]
        let kicks = true;
        if kicks {
            // A client may have reset the connection meanwhile; that is seen when it is read.
            let _ = socket_options::look_at_received(stream);
        }
        Ok(Some(Share {
            cookie,
            received: 0,
            sent: 0,
            is_user: false,
            is_clear: false,
        }))
    }

    fn record(&self, cookie: u64) -> Result<Option<Vec<u8>>, EchoError> {
        self.connections
            .lookup(&cookie.to_ne_bytes(), MapFlags::ANY)
            .map_err(EchoError::bpf("reading a record"))
    }
}

impl Drained for Engine {
    fn is_drained(&self, share: &Share) -> Result<bool, EchoError> {
        #[cfg(test)]
        if self.without.drain {
            return Ok(true);
        }
        let mut question = [0; QUESTION_BYTES];
        question[QUESTION_COOKIE_AT..][..8].copy_from_slice(&share.cookie.to_ne_bytes());
        question[QUESTION_SENT_AT..][..8].copy_from_slice(&share.sent.to_ne_bytes());
        let what = "reading whether a connection is drained";
        // A connection without a record has ended: there is nobody to wait for.
        Ok(test_run(&self.object, "echo_drained", &question, what)? != PENDING)
    }

    fn is_all_read(&self, share: &Share) -> Result<bool, EchoError> {
        let record = self.record(share.cookie)?;
        let passed = record.as_deref().and_then(|record| {
            let bytes = record.get(PASSED_AT..PASSED_AT + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().ok()?))
        });
        Ok(passed.is_none_or(|passed| passed <= share.received))
    }
}

fn ring(events: &MapHandle, told: Arc<Mutex<Vec<Notice>>>) -> Result<Ring, BpfError> {
    Ring::open(events, "reading the ring of notices", move |bytes| {
        if let Some(notice) = Notice::read(bytes) {
            told.lock().unwrap_or_else(|e| e.into_inner()).push(notice);
        }
    })
}

impl Reader {
    /// Sums over all processors.
    pub(in crate::echo) fn read(&self) -> Result<KernelCounts, EchoError> {
        Ok(KernelCounts::from_words(&per_cpu::sums(&self.0)?))
    }
}
