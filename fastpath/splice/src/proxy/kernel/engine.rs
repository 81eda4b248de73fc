//! The running BPF programs, and their interface to user space.
use super::contract::{
    self, CONFIG_BYTES, KernelCounts, Notice, PENDING, QUESTION_BYTES, QUESTION_COOKIE_AT,
    QUESTION_SENT_AT,
};
use crate::proxy::share::{Kernel, Share};
use crate::proxy::{ProxyError, ProxyPlan};
use hopscope_bpf::object::{self, has_capabilities};
use hopscope_bpf::{BpfError, Ring, compiled, per_cpu, test_run};
use hopscope_eventloop::{Poll, Token};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard};

static OBJECT: &[u8] = compiled!("proxy");

/// Events of the programs, until they are fetched.
#[derive(Default)]
pub(super) struct Told {
    notices: Vec<Notice>,
    /// How often user space took over, by socket.
    takeovers: HashMap<u64, u32>,
}

pub(in crate::proxy) struct Engine {
    pub(super) object: Object,
    pub(super) ways: MapHandle,
    pub(super) progress: MapHandle,
    pub(super) targets: MapHandle,
    pub(super) arriving: MapHandle,
    events: MapHandle,
    ring: Ring,
    told: Arc<Mutex<Told>>,
    pub(super) most: u32,
    pub(super) joined: u32,
    #[cfg(test)]
    pub(super) without: crate::proxy::Without,
}

/// Reads the counters, also when the programs are gone.
pub(in crate::proxy) struct Reader(MapHandle);

impl Engine {
    pub(in crate::proxy) fn load(plan: &ProxyPlan) -> Result<Engine, ProxyError> {
        let config: [u8; CONFIG_BYTES] = contract::config(plan.limit);
        // Two directions each, and a little more: records go after their sockets.
        let entries = plan
            .kernel_connections
            .saturating_mul(2)
            .saturating_add(1024);
        let object = object::load(OBJECT, "hopproxy", has_capabilities, |open| {
            object::set_rodata(open, &config)?;
            for mut map in open.maps_mut() {
                let name = map.name().to_string_lossy().into_owned();
                let is_of_connections = [
                    "proxy_ways",
                    "proxy_progress",
                    "proxy_targets",
                    "proxy_arriving",
                ];
                if is_of_connections.contains(&name.as_str()) {
                    map.set_max_entries(entries)
                        .map_err(BpfError::call("sizing a map"))?;
                }
            }
            Ok(())
        })?;
        // First of all: a socket that is put into the map gets the program that is there then.
        let map = |name| object::map_handle(&object, name);
        let arriving = map("proxy_arriving")?;
        object::program(&object, "proxy_verdict")?
            .attach_sockmap(arriving.as_fd().as_raw_fd())
            .map_err(BpfError::call("attaching the verdict"))?;
        let events = map("proxy_events")?;
        let told = Arc::new(Mutex::new(Told::default()));
        let ring = ring(&events, told.clone())?;
        Ok(Engine {
            ways: map("proxy_ways")?,
            progress: map("proxy_progress")?,
            targets: map("proxy_targets")?,
            arriving,
            object,
            events,
            ring,
            told,
            most: plan.kernel_connections,
            joined: 0,
            #[cfg(test)]
            without: plan.without,
        })
    }

    pub(in crate::proxy) fn reader(&self) -> Result<Reader, ProxyError> {
        Ok(Reader(object::map_handle(&self.object, "proxy_counts")?))
    }

    /// Has it told when there are notices.
    pub(in crate::proxy) fn watch(&self, poll: &Poll, token: Token) -> Result<(), Errno> {
        poll.add(&self.events, token, EpollFlags::EPOLLIN)
    }

    pub(in crate::proxy) fn notices(&self) -> Result<Vec<Notice>, ProxyError> {
        let mut told = self.listen()?;
        Ok(std::mem::take(&mut told.notices))
    }

    /// Reads shared memory only.
    fn listen(&self) -> Result<MutexGuard<'_, Told>, ProxyError> {
        self.ring.consume(usize::MAX)?;
        Ok(self.told.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// Bytes that the kernel moved in this direction.
    pub(in crate::proxy) fn redirected(&self, share: &Share) -> Result<u64, ProxyError> {
        let way = self.way(share.cookie)?;
        Ok(way.as_deref().map_or(0, contract::redirected))
    }

    fn way(&self, cookie: u64) -> Result<Option<Vec<u8>>, ProxyError> {
        self.ways
            .lookup(&cookie.to_ne_bytes(), MapFlags::ANY)
            .map_err(ProxyError::bpf("reading a record"))
    }

    /// The sockets are closed and will not be used again.
    pub(in crate::proxy) fn forget(&mut self, cookies: [u64; 2]) {
        self.joined -= 1;
        for cookie in cookies {
            if let Ok(mut told) = self.listen() {
                told.takeovers.remove(&cookie);
            }
            #[cfg(test)]
            if self.without.records_deleted {
                continue;
            }
            // One of the two may never have had a record.
            let key = cookie.to_ne_bytes();
            let _ = self.ways.delete(&key);
            let _ = self.progress.delete(&key);
        }
    }
}

impl Kernel for Engine {
    fn is_drained(&self, share: &Share) -> Result<bool, ProxyError> {
        #[cfg(test)]
        if self.without.drain {
            return Ok(true);
        }
        let mut question = [0; QUESTION_BYTES];
        question[QUESTION_COOKIE_AT..][..8].copy_from_slice(&share.cookie.to_ne_bytes());
        question[QUESTION_SENT_AT..][..8].copy_from_slice(&share.sent.to_ne_bytes());
        let what = "reading whether a connection is drained";
        Ok(test_run(&self.object, "proxy_drained", &question, what)? != PENDING)
    }

    fn is_all_read(&self, share: &Share) -> Result<bool, ProxyError> {
        let way = self.way(share.cookie)?;
        Ok(way.is_none_or(|way| contract::passed(&way) <= share.received))
    }

    fn takeovers(&self, share: &Share) -> Result<u32, ProxyError> {
        let told = self.listen()?;
        Ok(told.takeovers.get(&share.cookie).copied().unwrap_or(0))
    }

    fn say_progress(&self, share: &Share) -> Result<(), ProxyError> {
        let key = share.cookie.to_ne_bytes();
        self.progress
            .update(&key, &contract::progress(share), MapFlags::ANY)
            .map_err(ProxyError::bpf("saying how far user space is"))
    }
}

fn ring(events: &MapHandle, told: Arc<Mutex<Told>>) -> Result<Ring, BpfError> {
    Ring::open(events, "reading the ring of notices", move |bytes| {
        if let Some(notice) = Notice::read(bytes) {
            let mut told = told.lock().unwrap_or_else(|e| e.into_inner());
            if let Notice::User { cookie } = notice {
                *told.takeovers.entry(cookie).or_default() += 1;
            }
            told.notices.push(notice);
        }
    })
}

impl Reader {
    /// Sums over all processors.
    pub(in crate::proxy) fn read(&self) -> Result<KernelCounts, ProxyError> {
        Ok(KernelCounts::from_words(&per_cpu::sums(&self.0)?))
    }
}
