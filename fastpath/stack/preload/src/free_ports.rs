//! Ports for the kernel's sockets at every address that name none: listen(2) takes them in the stack, too, whose own connections, and those
//! that are over since less than a minute, the kernel does not know.
use crate::description::Undecided;
use crate::kernel;
use crate::rows;
use crate::state::State;
use hopscope_stack_abi::address;
use hopscope_stack_engine::SocketKind;
use hopscope_stack_instance::programs::wire::{Request, Response, Which};
use nix::libc;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Ports that the stack has free and the kernel has not.
const TRIES: u32 = 64;
/// linux/in.h
const IP_LOCAL_PORT_RANGE: i32 = 51;

impl State {
    /// bind(2) of the kernel's socket to every address.
    pub fn bind_kernels_any(
        &mut self,
        fd: i32,
        (local, bytes): (SocketAddr, &[u8]),
        undecided: &Undecided,
    ) -> Result<(), i32> {
        let chooses = local.port() == 0 && undecided.kind == SocketKind::Tcp;
        let tries = match chooses && !is_particular(undecided) {
            true => TRIES,
            false => 0,
        };
        for _ in 0..tries {
            let Some((port, held)) = self.free_port(local) else {
                break;
            };
            let mut at = bytes.to_vec();
            at[2..4].copy_from_slice(&port.to_be_bytes());
            let bound = kernel::bind(fd, &at);
            drop(held);
            self.keep_spares();
            match bound {
                Err(libc::EADDRINUSE) => {}
                bound => return bound.map(drop),
            }
        }
        self.settled(|| kernel::bind(fd, bytes)).map(drop)
    }

    /// One that nothing in the stack has, and what holds it there. `None`: the kernel chooses.
    fn free_port(&mut self, any: SocketAddr) -> Option<(u16, Option<OwnedFd>)> {
        if self.instance.is_none() {
            // Where this process has no stack, nothing in it has a port.
            let stack = self.owned_stack()?;
            let id = stack.engine.socket(SocketKind::Tcp, any.is_ipv6()).ok()?;
            let bound = stack.engine.bind(id, any);
            let at = bound.and_then(|()| stack.engine.local_address(id));
            let _ = stack.engine.close(crate::stack::now(), id);
            return Some((at.ok()?.port(), None));
        }
        let request = Request::Bind(Which::New {
            ipv6: any.is_ipv6(),
            local: Some(any),
            options: Vec::new(),
        });
        let (Response::Socket(name), held) = self.ask(&request, None).ok()? else {
            return None;
        };
        let at = address::from_bytes(rows::row(name)?.address(true)).ok()??;
        Some((at.port(), held))
    }
}

/// connect(2) is to choose, or the program has said from which.
fn is_particular(undecided: &Undecided) -> bool {
    let particular = [libc::IP_BIND_ADDRESS_NO_PORT, IP_LOCAL_PORT_RANGE];
    let mut options = undecided.options.iter();
    options.any(|(level, name, _)| *level == libc::IPPROTO_IP && particular.contains(name))
}
