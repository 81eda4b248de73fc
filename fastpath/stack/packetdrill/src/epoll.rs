//! epoll(7) over the engine's sockets: level, edge, one-shot.
use hopscope_stack_engine::SocketId;
use nix::libc;

pub struct Interest {
    pub fd: i32,
    pub socket: SocketId,
    pub events: u32,
    pub data: u64,
    /// Something happened that was not reported yet.
    edge: bool,
    /// EPOLLONESHOT was reported.
    disarmed: bool,
}

#[derive(Default)]
pub struct Epoll(Vec<Interest>);

impl Epoll {
    pub fn control(
        &mut self,
        operation: i32,
        fd: i32,
        socket: SocketId,
        events: u32,
        data: u64,
    ) -> Result<i64, i32> {
        let at = self.0.iter().position(|interest| interest.fd == fd);
        let interest = Interest {
            fd,
            socket,
            events,
            data,
            edge: true,
            disarmed: false,
        };
        match (operation, at) {
            (libc::EPOLL_CTL_ADD, None) => self.0.push(interest),
            (libc::EPOLL_CTL_ADD, Some(_)) => return Err(libc::EEXIST),
            (libc::EPOLL_CTL_MOD, Some(at)) => self.0[at] = interest,
            (libc::EPOLL_CTL_DEL, Some(at)) => drop(self.0.remove(at)),
            (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, None) => return Err(libc::ENOENT),
            _ => return Err(libc::EINVAL),
        }
        Ok(0)
    }

    pub fn forget(&mut self, socket: SocketId) {
        self.0.retain(|interest| interest.socket != socket);
    }

    pub fn happened(&mut self, socket: SocketId) {
        for interest in self
            .0
            .iter_mut()
            .filter(|interest| interest.socket == socket)
        {
            interest.edge = true;
        }
    }

    /// What epoll_wait reports now: events and data.
    pub fn harvest(&mut self, most: usize, readiness: impl Fn(SocketId) -> u32) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        for interest in &mut self.0 {
            let always = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
            let level = readiness(interest.socket) & (interest.events | always);
            let edge_only = interest.events & libc::EPOLLET as u32 != 0;
            if level == 0 || interest.disarmed || edge_only && !interest.edge || found.len() == most
            {
                continue;
            }
            interest.edge = false;
            interest.disarmed = interest.events & libc::EPOLLONESHOT as u32 != 0;
            found.push((level, interest.data));
        }
        found
    }
}
