//! A socket of the address family XDP: frame memory shared with the kernel, and four rings of
//! addresses into it (Linux, networking/af_xdp.rst).
//!
//! Chunks `0..receive_frames` of the memory are received into, the others are sent from; an
//! address is in exactly one place at a time: a ring, or a list here.
use super::map::Mapping;
use super::socket::{check, get_option, open_socket, set_option};
use nix::libc;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Shared by one producer and one consumer, one of which is the kernel.
struct Ring<T> {
    map: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
    len: u32,
    /// Our own index: of the next entry to produce or to consume.
    next: u32,
    entry: std::marker::PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn new(
        fd: BorrowedFd<'_>,
        option: libc::c_int,
        len: u32,
        page: i64,
        at: &libc::xdp_ring_offset,
    ) -> io::Result<Ring<T>> {
        set_option(fd, libc::SOL_XDP, option, len as libc::c_int)?;
        let bytes = at.desc as usize + len as usize * size_of::<T>();
        Ok(Ring {
            map: Mapping::shared(fd, page, bytes)?,
            producer: at.producer as usize,
            consumer: at.consumer as usize,
            flags: at.flags as usize,
            entries: at.desc as usize,
            len,
            next: 0,
            entry: std::marker::PhantomData,
        })
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: within the mapping, aligned by the kernel, and only accessed atomically.
        unsafe { AtomicU32::from_ptr(self.map.at(offset, 4).cast()) }
    }

    fn entry(&self, index: u32) -> *mut T {
        let index = (index & (self.len - 1)) as usize;
        let at = self.entries + index * size_of::<T>();
        self.map.at(at, size_of::<T>()).cast()
    }

    /// Entries that can be produced now.
    fn room(&self) -> u32 {
        self.len
            - (self
                .next
                .wrapping_sub(self.word(self.consumer).load(Ordering::Acquire)))
    }

    /// Entries that can be consumed now.
    fn ready(&self) -> u32 {
        let produced = self.word(self.producer).load(Ordering::Acquire);
        produced.wrapping_sub(self.next)
    }

    /// Only with `room` for it; visible after `publish`.
    fn produce(&mut self, entry: T) {
        // SAFETY: until `publish`, the kernel does not look at this entry.
        unsafe { self.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
    }

    fn publish(&self) {
        self.word(self.producer).store(self.next, Ordering::Release);
    }

    /// Only what is `ready`; the kernel may use the entry again after `release`.
    fn consume(&mut self) -> T {
        // SAFETY: the kernel does not touch this entry until `release`.
        let entry = unsafe { self.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        entry
    }

    fn release(&self) {
        self.word(self.consumer).store(self.next, Ordering::Release);
    }
}

pub(crate) struct XskOptions {
    pub interface: u32,
    pub queue: u32,
    /// Powers of two.
    pub receive_frames: u32,
    pub send_frames: u32,
    /// 2,048 or 4,096.
    pub chunk_len: u32,
}

pub(crate) struct Xsk {
    socket: OwnedFd,
    memory: Mapping,
    chunk_len: usize,
    fill: Ring<u64>,
    completion: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    send: Ring<libc::xdp_desc>,
    /// Chunks to send from.
    free: Vec<u64>,
    /// Filled and not yet published.
    unpublished: bool,
}

impl Xsk {
    pub(crate) fn open(options: &XskOptions) -> io::Result<Xsk> {
        let (receive, send) = (options.receive_frames, options.send_frames);
        let chunk_len = options.chunk_len as usize;
        let len = (receive + send) as usize * chunk_len;
        let memory = Mapping::anonymous(len)?;
        let socket = open_socket(libc::AF_XDP, libc::SOCK_RAW)?;
        let fd = socket.as_fd();
        let region = libc::xdp_umem_reg_v1 {
            addr: memory.at(0, len) as u64,
            len: len as u64,
            chunk_size: options.chunk_len,
            headroom: 0,
        };
        set_option(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, region)?;
        let at: libc::xdp_mmap_offsets = get_option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        // Twice the chunks: the kernel publishes what it received before it gives the entry back.
        let fill_page = libc::XDP_UMEM_PGOFF_FILL_RING as i64;
        let mut fill: Ring<u64> =
            Ring::new(fd, libc::XDP_UMEM_FILL_RING, receive * 2, fill_page, &at.fr)?;
        let done_page = libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64;
        let done = libc::XDP_UMEM_COMPLETION_RING;
        let completion = Ring::new(fd, done, send, done_page, &at.cr)?;
        let page = libc::XDP_PGOFF_RX_RING;
        let rx = Ring::new(fd, libc::XDP_RX_RING, receive, page, &at.rx)?;
        let page = libc::XDP_PGOFF_TX_RING;
        let tx = Ring::new(fd, libc::XDP_TX_RING, send, page, &at.tx)?;
        for chunk in 0..u64::from(receive) {
            fill.produce(chunk * chunk_len as u64);
        }
        fill.publish();
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: options.interface,
            sxdp_queue_id: options.queue,
            sxdp_shared_umem_fd: 0,
        };
        let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        // SAFETY: `address` lives over the call and is `size` bytes long.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size) })?;
        let sent_from = u64::from(receive)..u64::from(receive + send);
        Ok(Xsk {
            socket,
            memory,
            chunk_len,
            fill,
            completion,
            receive: rx,
            send: tx,
            free: sent_from.map(|chunk| chunk * chunk_len as u64).collect(),
            unpublished: false,
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Shows up to `max` frames and gives their chunks back.
    pub(crate) fn receive(&mut self, max: usize, mut visit: impl FnMut(&[u8])) -> usize {
        let count = (self.receive.ready().min(self.fill.room()) as usize).min(max);
        for _ in 0..count {
            let frame = self.receive.consume();
            let at = self.memory.at(frame.addr as usize, frame.len as usize);
            // SAFETY: within the memory; the kernel does not write there until the chunk is in the
            // fill ring again, and nobody else has its address.
            visit(unsafe { std::slice::from_raw_parts(at, frame.len as usize) });
            self.fill.produce(frame.addr & !(self.chunk_len as u64 - 1));
        }
        if count > 0 {
            self.receive.release();
            self.fill.publish();
        }
        count
    }

    /// Lets `fill` write the next frame; false when there is no room, or nothing was written.
    ///
    /// # Errors
    /// Those of `fill`.
    pub(crate) fn push<E>(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> Result<Option<usize>, E>,
    ) -> Result<bool, E> {
        if self.free.is_empty() {
            self.collect();
        }
        let Some(&address) = self.free.last().filter(|_| self.send.room() > 0) else {
            return Ok(false);
        };
        let at = self.memory.at(address as usize, self.chunk_len);
        // SAFETY: the chunk is in the free list: the kernel does not read it.
        let chunk = unsafe { std::slice::from_raw_parts_mut(at, self.chunk_len) };
        let Some(len) = fill(chunk)? else {
            return Ok(false);
        };
        self.free.pop();
        self.send.produce(libc::xdp_desc {
            addr: address,
            len: len as u32,
            options: 0,
        });
        self.unpublished = true;
        Ok(true)
    }

    fn collect(&mut self) {
        let count = self.completion.ready();
        for _ in 0..count {
            let address = self.completion.consume();
            self.free.push(address);
        }
        if count > 0 {
            self.completion.release();
        }
    }

    /// Frames that the kernel has not looked at.
    pub(crate) fn waiting(&self) -> usize {
        (self.send.len - self.send.room()) as usize
    }

    /// Lets the kernel send a batch, where it has to be told.
    pub(crate) fn kick(&mut self) -> io::Result<()> {
        if self.unpublished {
            self.send.publish();
            self.unpublished = false;
        }
        if self.waiting() == 0 {
            return Ok(());
        }
        // Full: the kernel cannot say what it has sent.
        if self.completion.ready() > self.completion.len / 2 {
            self.collect();
        }
        let flags = self.send.word(self.send.flags).load(Ordering::Acquire);
        if flags & libc::XDP_RING_NEED_WAKEUP == 0 {
            return Ok(());
        }
        let fd = self.socket.as_raw_fd();
        let (nothing, nobody) = (std::ptr::null(), std::ptr::null());
        // SAFETY: no memory is passed.
        let result = unsafe { libc::sendto(fd, nothing, 0, libc::MSG_DONTWAIT, nobody, 0) };
        check(result as i32).map(drop)
    }

    pub(crate) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        get_option(self.fd(), libc::SOL_XDP, libc::XDP_STATISTICS)
    }
}
