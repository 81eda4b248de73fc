//! Guest memory that goes away while it is mapped: to touch what is beyond the end of its file is a SIGBUS, and that
//! ends the process. So does hugetlbfs without a page left.
//!
//! Here zeros of this process take the place of the whole region, so that the access goes on, and the region is
//! marked. Its owner looks for the mark and ends that connection. Compositors treat their clients' buffers so
//! (libwayland, `wayland-shm.c`). A sealed file (`F_SEAL_SHRINK`, fcntl(2)) cannot become shorter.
use nix::errno::Errno;
use nix::libc::{self, c_int, c_void, siginfo_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Regions of all front ends of this process together.
const SLOTS: usize = 128;

struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    /// 0: nothing is watched.
    len: AtomicUsize,
    vanished: AtomicBool,
}

static REGIONS: [Slot; SLOTS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        vanished: AtomicBool::new(false),
    }
}; SLOTS];

/// What SIGBUS did before; set once.
static BEFORE: OnceLock<nix::Result<SigAction>> = OnceLock::new();

/// A mapped region whose memory may vanish. To be dropped before it is unmapped.
pub(super) struct Watched(&'static Slot);

impl Watched {
    /// # Errors
    /// Too many regions are watched; the signal cannot be had.
    pub(super) fn new(start: *const u8, len: usize) -> io::Result<Watched> {
        take_over()?;
        let free = |slot: &&Slot| !slot.taken.swap(true, Ordering::AcqRel);
        let slot = REGIONS.iter().find(free);
        let slot = slot.ok_or_else(|| io::Error::other("too many regions are mapped"))?;
        slot.vanished.store(false, Ordering::Relaxed);
        slot.start.store(start as usize, Ordering::Relaxed);
        slot.len.store(len, Ordering::Release);
        Ok(Watched(slot))
    }

    pub(super) fn has_vanished(&self) -> bool {
        self.0.vanished.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.len.store(0, Ordering::Release);
        self.0.taken.store(false, Ordering::Release);
    }
}

impl Slot {
    /// Whether `address` was in this region, and can be touched now.
    fn replace(&self, address: usize) -> bool {
        let len = self.len.load(Ordering::Acquire);
        let start = self.start.load(Ordering::Relaxed);
        if !(start..start + len).contains(&address) {
            return false;
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: exactly a region that `Watched::new` was told of and that is still mapped: nothing else is
        // overwritten. The memory is the guest's: all accesses to it are prepared for any bytes at any time.
        let placed = unsafe { libc::mmap(start as *mut c_void, len, protection, flags, -1, 0) };
        let done = placed as usize == start;
        self.vanished.fetch_or(done, Ordering::Relaxed);
        done
    }
}

fn take_over() -> io::Result<()> {
    let action = SigAction::new(
        SigHandler::SigAction(on_bus_error),
        SaFlags::SA_SIGINFO | SaFlags::SA_ONSTACK | SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler does only what signal-safety(7) allows: system calls, and loads and stores of atomics.
    let before = BEFORE.get_or_init(|| unsafe { sigaction(Signal::SIGBUS, &action) });
    before.map(drop).map_err(io::Error::from)
}

extern "C" fn on_bus_error(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    let errno = Errno::last_raw();
    // SAFETY: the kernel passes this structure (SA_SIGINFO), with an address where the code says that memory was
    // touched.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let touched = code == libc::BUS_ADRERR;
    if !(touched && REGIONS.iter().any(|region| region.replace(address))) {
        // Not ours: whoever was there before has it. One that was touched comes again, one that was sent does not.
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        let before = BEFORE.get().and_then(|before| before.as_ref().ok());
        // SAFETY: what the signal did before this module, which is sound where it was.
        let _ = unsafe { sigaction(Signal::SIGBUS, before.unwrap_or(&default)) };
        if !touched {
            let _ = raise(Signal::SIGBUS);
        }
    }
    Errno::set_raw(errno);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;
    use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap};

    #[test]
    fn what_vanishes_reads_as_zeros_and_is_marked() {
        let file = File::from(memfd_create("guest", MFdFlags::MFD_CLOEXEC).expect("memory"));
        file.set_len(0x4000).expect("room");
        let other = file.try_clone().expect("a descriptor");
        let region: GuestRegionMmap =
            GuestRegionMmap::from_range(GuestAddress(0), 0x4000, Some(FileOffset::new(file, 0)))
                .expect("mapped");
        let watched = Watched::new(region.as_ptr(), 0x4000).expect("a slot");
        let memory: GuestMemoryMmap = GuestMemoryMmap::from_regions(vec![region]).expect("one");
        memory
            .write_obj(7u32, GuestAddress(0x3000))
            .expect("inside");
        assert!(!watched.has_vanished());
        other.set_len(0x1000).expect("shorter");
        let read: u32 = memory.read_obj(GuestAddress(0x3000)).expect("mapped");
        assert_eq!((read, watched.has_vanished()), (0, true));
        // Written to as well; and another region is not concerned.
        memory
            .write_obj(9u32, GuestAddress(0x2000))
            .expect("inside");
        let next = Watched::new(std::ptr::dangling(), 8).expect("a slot");
        assert!(!next.has_vanished());
    }
}
