//! Submission and completion. The only place of the echo servers with unsafe code: the kernel writes to
//! memory that it was given earlier, so memory and operation are kept together here.
use super::super::EchoError;
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

/// Entries of the submission queue; what does not fit is submitted in between.
const ENTRIES: u32 = 1024;
/// Of a connection.
const BUFFER: usize = 64 << 10;

const ACCEPT: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;
const CANCELLED: u64 = u64::MAX - 2;

/// A connection's socket and its memory. At most one operation is under way in it.
struct Place {
    stream: Option<TcpStream>,
    buffer: Box<[u8]>,
    is_busy: bool,
}

pub(in crate::echo) struct Ring {
    ring: IoUring,
    places: Vec<Place>,
    free: Vec<usize>,
    busy: usize,
    is_accepting: bool,
}

/// What an operation came to: a number of bytes, a descriptor, or an error number below 0.
#[derive(Debug, Clone, Copy)]
pub(super) enum Done {
    Accept(i32),
    Stop,
    Place(usize, i32),
}

impl Ring {
    pub(super) fn new() -> Result<Ring, EchoError> {
        // Completions are taken by the thread that waits for them, so that nothing interrupts it (Linux
        // 6.1); older kernels do without.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(ENTRIES)
            .or_else(|_| IoUring::new(ENTRIES));
        let ring = ring.map_err(|error| EchoError::Uring {
            why: error.to_string(),
        })?;
        Ok(Ring {
            ring,
            places: Vec::new(),
            free: Vec::new(),
            busy: 0,
            is_accepting: false,
        })
    }

    pub(super) fn accept(&mut self, listener: &TcpListener) -> Result<(), EchoError> {
        let entry = opcode::Accept::new(
            Fd(listener.as_raw_fd()),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        );
        let entry = entry.flags(nix::libc::SOCK_CLOEXEC).build();
        self.is_accepting = true;
        self.push(entry.user_data(ACCEPT))
    }

    /// Completes when the descriptor can be read.
    pub(super) fn watch(&mut self, stop: impl AsFd) -> Result<(), EchoError> {
        let readable = nix::libc::POLLIN as u32;
        let entry = opcode::PollAdd::new(Fd(stop.as_fd().as_raw_fd()), readable).build();
        self.push(entry.user_data(STOP))
    }

    /// A place for a connection.
    pub(super) fn enter(&mut self, stream: TcpStream) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place {
                stream: None,
                buffer: vec![0; BUFFER].into_boxed_slice(),
                is_busy: false,
            });
            self.places.len() - 1
        });
        self.places[at].stream = Some(stream);
        at
    }

    /// Closes the connection of a place in which nothing is under way.
    pub(super) fn leave(&mut self, at: usize) {
        let place = &mut self.places[at];
        if !place.is_busy && place.stream.take().is_some() {
            self.free.push(at);
        }
    }

    pub(super) fn open(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Into the place's memory.
    pub(super) fn receive(&mut self, at: usize) -> Result<(), EchoError> {
        let Some((fd, buffer)) = self.begin(at) else {
            return Ok(());
        };
        let entry = opcode::Recv::new(fd, buffer, BUFFER as u32).build();
        self.push(entry.user_data(at as u64))
    }

    /// From the place's memory.
    pub(super) fn send(&mut self, at: usize, from: usize, to: usize) -> Result<(), EchoError> {
        let (from, to) = (from.min(BUFFER), to.min(BUFFER));
        let Some((fd, buffer)) = self.begin(at) else {
            return Ok(());
        };
        let bytes = to.saturating_sub(from) as u32;
        let entry = opcode::Send::new(fd, buffer.wrapping_add(from), bytes);
        // Short sends are carried on by the kernel.
        let entry = entry.flags(nix::libc::MSG_WAITALL | nix::libc::MSG_NOSIGNAL);
        self.push(entry.build().user_data(at as u64))
    }

    /// Marks the place; `None` if it is in use or has no connection.
    fn begin(&mut self, at: usize) -> Option<(Fd, *mut u8)> {
        let place = self.places.get_mut(at)?;
        let stream = place.stream.as_ref()?;
        if place.is_busy {
            return None;
        }
        place.is_busy = true;
        self.busy += 1;
        Some((Fd(stream.as_raw_fd()), place.buffer.as_mut_ptr()))
    }

    fn push(&mut self, entry: squeue::Entry) -> Result<(), EchoError> {
        loop {
            // SAFETY: an entry points to nothing, or into the buffer of a place that is marked as busy. The
            // buffer is on the heap, does not move, is not touched while the mark is there, and is
            // freed after every mark is gone (`drop`).
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_ok() {
                return Ok(());
            }
            let submitted = self.ring.submit();
            submitted.map_err(EchoError::system("submitting to io_uring"))?;
        }
    }

    /// Waits until something is done.
    pub(super) fn wait(&mut self, done: &mut Vec<Done>) -> Result<(), EchoError> {
        match self.ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // Completions are to be taken first.
            Err(error) if error.raw_os_error() == Some(nix::libc::EBUSY) => {}
            Err(error) => return Err(EchoError::system("waiting for io_uring")(error)),
        }
        for entry in self.ring.completion() {
            let one = match entry.user_data() {
                ACCEPT => {
                    self.is_accepting = false;
                    Done::Accept(entry.result())
                }
                STOP => Done::Stop,
                CANCELLED => continue,
                at => {
                    if let Some(place) = self.places.get_mut(at as usize)
                        && place.is_busy
                    {
                        place.is_busy = false;
                        self.busy -= 1;
                    }
                    Done::Place(at as usize, entry.result())
                }
            };
            done.push(one);
        }
        Ok(())
    }
}

impl Drop for Ring {
    /// Ends what is under way before its memory goes, and before the listener does: the kernel takes a ring
    /// down some time after its process has ended, and an `accept` would hold the port until then.
    fn drop(&mut self) {
        if self.is_accepting {
            let cancel = opcode::AsyncCancel::new(ACCEPT).build();
            if self.push(cancel.user_data(CANCELLED)).is_err() {
                self.is_accepting = false;
            }
        }
        for place in self.places.iter().filter(|place| place.is_busy) {
            if let Some(stream) = &place.stream {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        while self.busy > 0 || self.is_accepting {
            if self.wait(&mut Vec::new()).is_err() {
                // What the kernel may still write to is never given back.
                std::mem::forget(std::mem::take(&mut self.places));
                return;
            }
        }
    }
}

/// The descriptor that `accept` came to.
pub(super) fn accepted(fd: i32) -> TcpStream {
    use std::os::fd::FromRawFd;
    // SAFETY: the kernel has just made it for this process, and nobody else knows it.
    unsafe { TcpStream::from_raw_fd(fd) }
}
