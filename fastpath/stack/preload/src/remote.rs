//! Sockets of a stack that is in another process: made there, and from then on descriptors of the kernel's, of which the library knows no
//! more than their rows in the instance's table.
use crate::description::Undecided;
use crate::kernel;
use crate::made::Made;
use crate::numbers::out_of_the_way;
use crate::policy;
use crate::rows;
use crate::say::trace;
use crate::sets::{Membership, join, leave, memberships};
use crate::state::State;
use crate::step::Step;
use crate::table::{self, Entry};
use hopscope_stack_abi::address;
use hopscope_stack_engine::SocketKind;
use hopscope_stack_instance::programs::connection::fill;
use hopscope_stack_instance::programs::table::Phase;
use hopscope_stack_instance::programs::wire::{Name, Request, Response, Which, Whose};
use nix::libc;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

impl State {
    pub fn ask(
        &mut self,
        request: &Request,
        fd: Option<BorrowedFd<'_>>,
    ) -> Result<(Response, Option<OwnedFd>), i32> {
        let instance = self.instance.as_mut().ok_or(libc::EIO)?;
        let answer = instance.ask(request, fd);
        // What comes with it has its place first.
        if !matches!(answer, Ok((_, Some(_)))) && !instance.has_spares() {
            instance.keep_spares();
        }
        answer
    }

    pub fn keep_spares(&mut self) {
        if let Some(instance) = &mut self.instance {
            instance.keep_spares();
        }
    }

    /// A call of the kernel, and once more where the instance still has what was closed: of the kernel's listeners and sockets of
    /// UDP it has descriptors, too.
    pub fn settled<T>(&mut self, call: impl Fn() -> Result<T, i32>) -> Result<T, i32> {
        match call() {
            Err(libc::EADDRINUSE) if self.ask(&Request::Settle, None).is_ok() => call(),
            done => done,
        }
    }

    /// To an address of the stack.
    pub fn bind_there(&mut self, index: u32, undecided: &Undecided, local: SocketAddr) -> Step {
        let request = Request::Bind(Which::New {
            ipv6: undecided.ipv6,
            local: Some(local),
            options: undecided.options.clone(),
        });
        let made = self.make_there(index, undecided, (&request, None), Entry::Instance);
        Step::of(made.map(|name| {
            // With the port that was chosen.
            let bound =
                rows::row(name).and_then(|row| address::from_bytes(row.address(true)).ok()?);
            self.remember(name, undecided, bound, (None, false));
        }))
    }

    /// For an instance that comes back, and for another connect.
    fn remember(
        &mut self,
        name: Name,
        undecided: &Undecided,
        bound: Option<SocketAddr>,
        (backlog, kernel_too): (Option<i32>, bool),
    ) {
        if let Some(instance) = &mut self.instance {
            let made = Made {
                ipv6: undecided.ipv6,
                options: undecided.options.clone(),
                bound,
                backlog,
                kernel_too,
                waits: false,
            };
            instance.made.insert(name, made);
        }
    }

    /// On every address, of the kernel's listener `kernel`, too.
    pub fn listen_there(
        &mut self,
        index: u32,
        undecided: &Undecided,
        (fd, backlog): (i32, i32),
        kernel_too: bool,
    ) -> Result<(), i32> {
        let local = Some(everywhere(fd, undecided.ipv6)?);
        let request = Request::Listen {
            which: Which::New {
                ipv6: undecided.ipv6,
                local,
                options: undecided.options.clone(),
            },
            backlog: backlog.max(0) as u32,
        };
        let kernel = kernel_too.then(|| kernel::borrow(fd));
        let name = self.make_there(index, undecided, (&request, kernel), Entry::Instance)?;
        self.remember(name, undecided, local, (Some(backlog), kernel_too));
        Ok(())
    }

    pub fn connect_there(
        &mut self,
        index: u32,
        fd: i32,
        undecided: &Undecided,
        peer: SocketAddr,
    ) -> Step {
        let local = match undecided.bound {
            true => everywhere(fd, undecided.ipv6).map(Some),
            false => Ok(None),
        };
        let local = match local {
            Ok(local) => local,
            Err(error) => return Step::Fail(error),
        };
        let request = Request::Connect {
            which: Which::New {
                ipv6: undecided.ipv6,
                local,
                options: undecided.options.clone(),
            },
            peer,
            filled: 0,
        };
        let made = self.make_there(index, undecided, (&request, None), Entry::Instance);
        Step::of(made.map(|name| self.remember(name, undecided, local, (None, false))))
    }

    /// Of a socket that the instance has: listen(2).
    pub fn listen_again(&mut self, name: Name, fd: i32, backlog: i32) -> Result<(), i32> {
        let request = Request::Listen {
            which: Which::There(name),
            backlog: backlog.max(0) as u32,
        };
        let was_bound = rows::state(name).phase == Phase::Bound;
        if was_bound {
            self.empty(fd);
        }
        self.ask(&request, None)?;
        if let Some(instance) = &mut self.instance {
            instance.made.listens(name, backlog);
        }
        if was_bound {
            // A listener is never writable.
            fill(kernel::borrow(fd));
        }
        Ok(())
    }

    /// Of a socket that is bound there: connect(2).
    pub fn connect_again(&mut self, name: Name, fd: i32, peer: SocketAddr) -> Result<(), i32> {
        let socket = rows::state(name);
        let anew = match socket.phase {
            Phase::Bound => false,
            Phase::Connecting if socket.errno != 0 => {
                // What became of the call before, where nobody has heard. One that was shut down did not fail.
                let is_shut = i32::from(socket.errno) == libc::ECONNRESET;
                let instance = self.instance.as_mut();
                let is_news = instance.is_some_and(|instance| instance.take_error(name));
                if is_news && !is_shut {
                    return Err(socket.errno.into());
                }
                true
            }
            Phase::Connecting => return Err(libc::EALREADY),
            _ => return Err(libc::EISCONN),
        };
        if policy::is_no_way(&self.handed, SocketKind::Tcp, peer) {
            return Err(libc::ENETUNREACH);
        }
        if anew {
            return self.connect_anew(name, fd, peer);
        }
        // Where it has listened, what woke others up would be read as the peer's bytes.
        self.empty(fd);
        let filled = fill(kernel::borrow(fd)) as u32;
        let request = Request::Connect {
            which: Which::There(name),
            peer,
            filled,
        };
        self.ask(&request, None).map(drop)
    }

    /// Ends an attempt to connect. `false`: it was over.
    pub fn disconnect_there(&mut self, name: Name) -> bool {
        self.ask(&Request::Disconnect { name }, None).is_ok()
    }

    /// One that could not be connected, another time: another socket of the instance, and the same descriptor. Where this process has
    /// not made it, its options and its port are not known.
    fn connect_anew(&mut self, name: Name, fd: i32, peer: SocketAddr) -> Result<(), i32> {
        let all = self.instance.as_ref().map(|instance| &instance.made);
        let made = all.and_then(|all| all.get(name)).cloned();
        let request = Request::Connect {
            which: Which::New {
                ipv6: rows::row(name).is_some_and(|row| row.ipv6 != 0),
                local: made.as_ref().and_then(|made| made.bound),
                options: made
                    .as_ref()
                    .map_or_else(Vec::new, |made| made.options.clone()),
            },
            peer,
            filled: 0,
        };
        let (Response::Socket(next), Some(pair)) = self.ask(&request, None)? else {
            return Err(libc::EIO);
        };
        if let (Some(made), Some(instance)) = (made, &mut self.instance) {
            instance.made.insert(next, made);
        }
        let placed = put_in_place(&pair, fd, next);
        drop(pair);
        self.keep_spares();
        placed
    }

    pub fn set_option_there(&mut self, name: Name, option: (i32, i32, &[u8])) -> Result<(), i32> {
        let (level, number, value) = option;
        let set = (level, number, value.to_vec());
        self.ask(&Request::SetOption { name, option: set }, None)?;
        if let Some(instance) = &mut self.instance {
            instance.made.set(name, option);
        }
        Ok(())
    }

    pub fn option_there(&mut self, name: Name, level: i32, option: i32) -> Result<Vec<u8>, i32> {
        let request = Request::Option {
            name,
            level,
            option,
        };
        match self.ask(&request, None)?.0 {
            Response::Value(value) => Ok(value),
            _ => Err(libc::EIO),
        }
    }

    /// Bytes that the peer has not acknowledged, and that were not sent.
    pub fn queued_there(&mut self, name: Name) -> Result<(u32, u32), i32> {
        match self.ask(&Request::Queued { name }, None)?.0 {
            Response::Queued {
                unacknowledged,
                unsent,
            } => Ok((unacknowledged, unsent)),
            _ => Err(libc::EIO),
        }
    }

    /// Descriptors that came from elsewhere: which of them are the instance's.
    pub fn recognize(&mut self, fds: &[i32]) {
        if self.instance.is_none() {
            return;
        }
        let known = fds.iter().filter(|fd| table::get(**fd) == Entry::Kernel);
        let pairs: Vec<(i32, u64)> = known
            .filter_map(|fd| Some((*fd, kernel::pair_inode(*fd)?)))
            .collect();
        // As many as an answer holds.
        for pairs in pairs.chunks(256) {
            let inodes = pairs.iter().map(|(_, inode)| *inode).collect();
            let Ok((Response::Whose(all), _)) = self.ask(&Request::Whose { inodes }, None) else {
                return;
            };
            for ((fd, _), whose) in pairs.iter().zip(all) {
                let name = match whose {
                    Whose::Yours(name) => name,
                    Whose::Others => match self.ask(&Request::Share, Some(kernel::borrow(*fd))) {
                        Ok((Response::Socket(name), _)) => name,
                        _ => continue,
                    },
                    Whose::Nobodys => continue,
                };
                self.is_known(*fd, name);
            }
        }
    }

    fn is_known(&mut self, fd: i32, name: Name) {
        let of = rows::datagrams(name);
        let entry = of.map_or(Entry::Instance(name), |_| Entry::Datagrams(name));
        table::set(fd, entry);
        // What was told before was told to others.
        if let (Some(of), Some(instance)) = (of, &mut self.instance) {
            instance.hear_of(name, of.errors);
        }
    }

    /// A socket whose instance is gone is ready for ever, and servers would try for as long: nothing comes there from now on.
    pub fn silence(&mut self, fd: i32) -> Result<(), i32> {
        leave(&memberships(fd));
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let (quiet, kept) = pair.map_err(Errno::raw_os_error)?;
        // What would be sent there fails.
        let _ = rustix::net::shutdown(&kept, rustix::net::Shutdown::Read);
        let kept = out_of_the_way(kept.into_raw_fd())?;
        table::set(kept, Entry::Internal);
        replace(fd, &quiet)
    }

    /// The program's descriptors are ends of the instance's pair from now on.
    pub fn make_there(
        &mut self,
        index: u32,
        undecided: &Undecided,
        (request, fd): (&Request, Option<BorrowedFd<'_>>),
        entry: impl Fn(Name) -> Entry,
    ) -> Result<Name, i32> {
        let (Response::Socket(name), Some(pair)) = self.ask(request, fd)? else {
            return Err(libc::EIO);
        };
        let description = self.description(index).ok_or(libc::EBADF)?;
        let (fds, nonblocking) = (description.fds.clone(), description.nonblocking);
        if nonblocking {
            kernel::fcntl(pair.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK)?;
        }
        // What of the options is the descriptor's: how long calls wait.
        for (level, name, value) in &undecided.options {
            let times = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO];
            if *level == libc::SOL_SOCKET && times.contains(name) {
                let _ = kernel::set_option(pair.as_raw_fd(), *level, *name, value);
            }
        }
        for fd in &fds {
            put(&pair, *fd)?;
        }
        drop(pair);
        self.keep_spares();
        // Sets that they are in are the kernel's, too, from now on.
        self.leave_to_kernel(index);
        for fd in &fds {
            table::set(*fd, entry(name));
        }
        trace(|| format!("fd {fds:?}: the instance's socket {}", name.row));
        Ok(name)
    }
}

/// `fd` is `new` from now on, in the sets that it is in, too.
pub fn put_in_place(new: &OwnedFd, fd: i32, name: Name) -> Result<(), i32> {
    let sets: Vec<Membership> = memberships(fd);
    leave(&sets);
    let replaced = replace(fd, new);
    join(&sets);
    replaced?;
    table::set(fd, Entry::Instance(name));
    Ok(())
}

/// `fd` is `new` from now on, with the flags that its file had.
fn replace(fd: i32, new: &OwnedFd) -> Result<(), i32> {
    let of_file = kernel::fcntl(fd, libc::F_GETFL, 0)?;
    kernel::fcntl(new.as_raw_fd(), libc::F_SETFL, of_file as i32)?;
    put(new, fd)
}

/// In its place, closed by exec as it was.
fn put(new: &OwnedFd, fd: i32) -> Result<(), i32> {
    let closes = match kernel::fcntl(fd, libc::F_GETFD, 0)? as i32 & libc::FD_CLOEXEC {
        0 => 0,
        _ => libc::O_CLOEXEC,
    };
    kernel::dup3(new.as_raw_fd(), fd, closes).map(drop)
}

/// Every address, at the port that the kernel's socket has.
fn everywhere(fd: i32, ipv6: bool) -> Result<SocketAddr, i32> {
    let bytes = kernel::address(libc::SYS_getsockname, fd)?;
    let port = address::from_bytes(&bytes)?.map_or(0, |local| local.port());
    Ok(match ipv6 {
        false => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
        true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
    })
}
