//! Sockets of UDP whose stack is in another process: their beginning, and the calls that give them addresses. The kernel's socket goes along: the
//! instance has it for its options, and at every address for what comes there.
use crate::control::Wants;
use crate::description::Undecided;
use crate::kernel;
use crate::policy;
use crate::rows;
use crate::say::trace;
use crate::state::State;
use crate::table::Entry;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{HowToShut, SocketKind};
use hopscope_stack_instance::programs::wire::{Name, Request, Response};
use nix::libc;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

impl State {
    /// At `local`; without, at every address, with the port that the kernel's socket has or gets.
    pub fn begin_datagrams_there(
        &mut self,
        index: u32,
        fd: i32,
        undecided: &Undecided,
        (local, everywhere): (Option<SocketAddr>, bool),
    ) -> Result<Name, i32> {
        let mut wants = Wants::default();
        for (level, name, value) in &undecided.options {
            wants.set(*level, *name, value);
        }
        let request = Request::Datagrams {
            ipv6: undecided.ipv6,
            local,
            everywhere,
            options: undecided.options.clone(),
            wants: wants.to_bits(),
        };
        let name = self.make_there(
            index,
            undecided,
            (&request, Some(kernel::borrow(fd))),
            Entry::Datagrams,
        )?;
        if let Some(how) = undecided.shut {
            // It fails, as it did, and it counts.
            let how = match how {
                HowToShut::Read => libc::SHUT_RD,
                HowToShut::Write => libc::SHUT_WR,
                HowToShut::Both => libc::SHUT_RDWR,
            };
            let _ = kernel::shutdown(fd, how);
            self.shut_down_there(name);
        }
        Ok(name)
    }

    pub fn shut_down_there(&mut self, name: Name) {
        if let Some(instance) = &mut self.instance {
            instance.shut_down(name);
        }
    }

    /// In the stack, and in the kernel at the same port.
    pub fn bind_datagrams_everywhere(
        &mut self,
        index: u32,
        fd: i32,
        local: SocketAddr,
        undecided: &Undecided,
    ) -> Result<(), i32> {
        let both = !self.handed.policy.wildcard_is_stack;
        if both {
            self.bind_kernels(fd, local)?;
        }
        let chosen = both && local.port() == 0;
        let place = (Some(local).filter(|_| !chosen), both);
        let begun = self.begin_datagrams_there(index, fd, undecided, place);
        if begun.is_err() && both {
            kernel::disconnect(fd);
        }
        let whose = if both { "stack and kernel" } else { "stack" };
        trace(|| format!("fd {fd}: bind {local}: {whose}"));
        begun.map(drop)
    }

    fn bind_kernels(&mut self, fd: i32, local: SocketAddr) -> Result<(), i32> {
        let bytes = address::to_bytes(local);
        self.settled(|| kernel::bind(fd, &bytes)).map(drop)
    }

    /// The kernel's socket of one, for a call.
    pub fn kernels_datagrams(&mut self, name: Name) -> Result<OwnedFd, i32> {
        let (_, kernel) = self.ask(&Request::DatagramsKernel { name }, None)?;
        kernel.ok_or(libc::EIO)
    }

    /// bind(2) of one that is there.
    pub fn bind_datagrams_again(&mut self, name: Name, bytes: &[u8]) -> Result<(), i32> {
        if has_port(name) {
            return Err(libc::EINVAL);
        }
        let local = address::from_bytes(bytes)?.ok_or(libc::EAFNOSUPPORT)?;
        let any = local.ip().to_canonical().is_unspecified();
        if !any && !policy::takes(&self.handed, SocketKind::Udp, local) {
            return Err(libc::EADDRNOTAVAIL);
        }
        let both = any && !self.handed.policy.wildcard_is_stack;
        if both {
            let kernel = self.kernels_datagrams(name)?;
            self.bind_kernels(kernel.as_raw_fd(), local)?;
        }
        let request = Request::DatagramsBind {
            name,
            local: Some(local).filter(|local| !both || local.port() != 0),
            everywhere: both,
        };
        self.ask(&request, None).map(drop)
    }

    /// It gets a port, where it has given its own up.
    pub fn port_of_datagrams(&mut self, name: Name) -> Result<(), i32> {
        if has_port(name) {
            return Ok(());
        }
        let request = Request::DatagramsBind {
            name,
            local: None,
            everywhere: true,
        };
        self.ask(&request, None).map(drop)
    }

    /// connect(2), and its end.
    pub fn connect_datagrams_there(
        &mut self,
        name: Name,
        peer: Option<SocketAddr>,
    ) -> Result<(), i32> {
        let mut by_kernel = false;
        if let Some(peer) = peer {
            let everywhere = rows::datagrams(name).is_some_and(|of| of.everywhere);
            by_kernel = everywhere && !policy::leads_to(&self.handed, SocketKind::Udp, peer);
            if by_kernel {
                trace(|| format!("connect {peer}: kernel"));
                let kernel = self.kernels_datagrams(name)?;
                kernel::connect(kernel.as_raw_fd(), &address::to_bytes(peer))?;
            } else {
                if policy::is_no_way(&self.handed, SocketKind::Udp, peer) {
                    return Err(libc::ENETUNREACH);
                }
                self.port_of_datagrams(name)?;
            }
        }
        let request = Request::DatagramsConnect {
            name,
            peer,
            by_kernel,
        };
        self.ask(&request, None).map(drop)
    }

    /// What the path to there lets through in one packet.
    pub fn longest_datagram_there(&mut self, name: Name, peer: IpAddr) -> Result<usize, i32> {
        match self.ask(&Request::DatagramsLongest { name, peer }, None)?.0 {
            Response::Value(value) => {
                let longest = value.first_chunk().ok_or(libc::EIO)?;
                Ok(u32::from_ne_bytes(*longest) as usize)
            }
            _ => Err(libc::EIO),
        }
    }

    /// The control messages that its programs have asked for.
    pub fn want_of_datagrams(&mut self, name: Name, wants: Wants) -> Result<(), i32> {
        let wants = wants.to_bits();
        self.ask(&Request::DatagramsWant { name, wants }, None)
            .map(drop)
    }
}

fn has_port(name: Name) -> bool {
    let local = rows::row(name).map(|row| address::from_bytes(row.address(true)));
    !matches!(local, Some(Ok(Some(local))) if local.port() == 0)
}
