//! MadeSockets of an instance that has gone: once it is back they are made again. In between a descriptor of inotify(7) is in their place: it
//! is ready where something happens beside the instance's socket in the file system, the program accepts, and the instance is looked for.
use crate::kernel;
use crate::made::{Made, names};
use crate::remote::put_in_place;
use crate::rows;
use crate::say::say;
use crate::sleeper::watch;
use crate::state::State;
use crate::table::{self, Entry};
use hopscope_stack_abi::address;
use hopscope_stack_instance::programs::wire::{Name, Request, Response, Which};
use nix::libc;
use rustix::fs::inotify;
use rustix::io::Errno;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Times that events are read before the instance is looked for.
const EVENTS: usize = 16;

impl State {
    /// For a thread that waits in accept, beside the listener. `None`: no descriptor for it.
    pub fn wait_at_bell(&mut self) -> Option<i32> {
        let bell = match self.instance.as_ref()?.bells.current {
            Some(bell) => bell,
            None => self.internal(kernel::eventfd().ok()?).ok()?,
        };
        self.instance.as_mut()?.bells.wait_at(bell);
        Some(bell)
    }

    pub fn leave_bell(&mut self, bell: i32) {
        if let Some(instance) = &mut self.instance {
            instance.bells.leave(bell);
        }
    }

    /// The instance of this one has gone; true: it waits until that is back, or another thread was faster, and did all of that. Else the
    /// listener is silent from now on.
    pub fn wait_for_return(&mut self, listener: i32, name: Name) -> bool {
        if table::get(listener) != Entry::Instance(name) {
            return true;
        }
        let waits = self.waiting(listener, name);
        if let Err(error) = waits {
            let why = match error {
                libc::ENOENT => "this process has not made it".into(),
                _ => Errno::from_raw_os_error(error).to_string(),
            };
            say(&format!(
                "descriptor {listener} will not listen again: {why}"
            ));
            let _ = self.silence(listener);
        }
        waits.is_ok()
    }

    fn waiting(&mut self, listener: i32, name: Name) -> Result<(), i32> {
        let instance = self.instance.as_mut().ok_or(libc::EIO)?;
        let (made, _) = instance.made.listening(name).ok_or(libc::ENOENT)?;
        if made.waits {
            return Ok(());
        }
        // For each its own: whether calls wait is a flag of the description.
        let watched = watch_for(instance.path()).map_err(Errno::raw_os_error)?;
        put_in_place(&watched, listener, name)?;
        instance.made.waits(name);
        instance.bells.ring();
        Ok(())
    }

    /// Something has happened where the instance was: what has waited for it listens again, or goes on waiting. Err: not this one.
    pub fn look_for_return(&mut self, listener: i32) -> Result<(), i32> {
        let listeners = self.instance.as_ref().map(|instance| &instance.made);
        let waits = match table::get(listener) {
            Entry::Instance(name) => listeners.and_then(|of| of.listening(name)),
            _ => None,
        };
        if !waits.is_some_and(|(made, _)| made.waits) {
            // Another thread was faster: it listens.
            return Ok(());
        }
        let mut events = [0; 4096];
        // Whatever it was; what is left has the program accept once more. It may have calls wait.
        for _ in 0..EVENTS {
            if kernel::poll_now(&mut [watch(listener, libc::POLLIN)]) != Ok(1)
                || kernel::read(listener, &mut events).is_err()
            {
                break;
            }
        }
        if self.returned(listener)? {
            return Ok(());
        }
        // The directory may be another one by now, in which it is.
        let path = self.instance.as_ref().map(|instance| instance.path());
        let watched = path.map(|path| watch_all(kernel::borrow(listener), path));
        match watched {
            Some(Ok(())) => self.returned(listener).map(drop),
            _ => Err(libc::ENETDOWN),
        }
    }

    /// Those that have waited listen again; false: the instance is not back. Err: of this listener, whatever it waits for next.
    fn returned(&mut self, listener: i32) -> Result<bool, i32> {
        let mut result = Ok(true);
        for (fd, name) in names().collect::<Vec<_>>() {
            // Another descriptor of one that was made again before.
            if table::get(fd) != Entry::Instance(name) {
                continue;
            }
            match self.listen_anew(name) {
                Ok(()) | Err(libc::ENOENT) => {}
                // It is not back.
                Err(libc::ENETDOWN) => return Ok(false),
                Err(error) => {
                    let of = Errno::from_raw_os_error(error);
                    say(&format!("descriptor {fd} does not listen again: {of}"));
                    if fd == listener {
                        result = Err(error);
                    }
                }
            }
        }
        result
    }

    /// ENOENT: no listener, or one that was not made here, or one from which this process does not accept.
    fn listen_anew(&mut self, old: Name) -> Result<(), i32> {
        let instance = self.instance.as_ref().ok_or(libc::EIO)?;
        let (made, backlog) = instance.made.listening(old).ok_or(libc::ENOENT)?;
        if !made.waits {
            // Another process's to accept from (SO_REUSEPORT), or nobody's.
            return Err(libc::ENOENT);
        }
        let mut made = made.clone();
        made.waits = false;
        let local = rows::row(old).and_then(|row| address::from_bytes(row.address(true)).ok()?);
        let local = local.ok_or(libc::ENOENT)?;
        made.bound = Some(local);
        // Others have the same listener, and each of them makes its own.
        let shared = (
            libc::SOL_SOCKET,
            libc::SO_REUSEPORT,
            1_i32.to_ne_bytes().to_vec(),
        );
        made.options.push(shared);
        let request = Request::Listen {
            which: Which::New {
                ipv6: made.ipv6,
                local: Some(local),
                options: made.options.clone(),
            },
            backlog: backlog.max(0) as u32,
        };
        // Before there is a listener of the kernel that nobody accepts from.
        self.ask(&Request::Settle, None)?;
        let kernel = match made.kernel_too {
            true => Some(kernels(&made, local, backlog)?),
            false => None,
        };
        let answer = self.ask(&request, kernel.as_ref().map(AsFd::as_fd))?;
        let (Response::Socket(new), Some(pair)) = answer else {
            return Err(libc::EIO);
        };
        for (fd, _) in names().filter(|(_, name)| *name == old).collect::<Vec<_>>() {
            put_in_place(&pair, fd, new)?;
        }
        made.options.pop();
        if let Some(instance) = &mut self.instance {
            instance.bells.ring();
            instance.made.insert(new, made);
        }
        Ok(())
    }
}

/// Ready when something happens where an instance may be.
fn watch_for(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let watched = inotify::init(flags)?;
    watch_all(watched.as_fd(), path)?;
    Ok(watched)
}

/// Its directory, where an instance says that it takes programs, and those above, in which that may be made anew. Those that are watched
/// already are once.
fn watch_all(watched: BorrowedFd<'_>, path: &Path) -> Result<(), Errno> {
    let itself = inotify::WatchFlags::DELETE_SELF | inotify::WatchFlags::MOVE_SELF;
    let made = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
    let mut what = inotify::WatchFlags::ATTRIB | inotify::WatchFlags::MOVED_TO;
    let mut result = Err(Errno::NOENT);
    for folder in path.ancestors().skip(1) {
        let added = inotify::add_watch(watched, folder, what | itself);
        result = result.or(added.map(drop));
        what = made;
    }
    result
}

/// The kernel's listener at the same port, as the program's was.
fn kernels(made: &Made, local: SocketAddr, backlog: i32) -> Result<OwnedFd, i32> {
    let domain = match made.ipv6 {
        true => libc::AF_INET6,
        false => libc::AF_INET,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let fd = kernel::own(kernel::socket(domain, kind, 0)? as i32);
    for (level, number, value) in &made.options {
        // What the kernel refused was refused then.
        let _ = kernel::set_option(fd.as_raw_fd(), *level, *number, value);
    }
    kernel::bind(fd.as_raw_fd(), &address::to_bytes(local))?;
    kernel::listen(fd.as_raw_fd(), backlog)?;
    Ok(fd)
}
