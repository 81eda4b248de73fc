//! `perf_event_open`, as far as context switches need it (linux/perf_event.h): one software event
//! for a thread on one processor, and the ring that the kernel writes into.
use nix::libc;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

const TYPE_SOFTWARE: u32 = 1;
const COUNT_SW_TASK_CLOCK: u64 = 1;
const COUNT_SW_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_ID: u64 = 1 << 6;

const INHERIT: u64 = 1 << 1;
/// Without it users without access to kernel events (perf_event_paranoid 2) are refused.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// On its counter whenever its thread runs, or in error.
const PINNED: u64 = 1 << 2;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
const CONTEXT_SWITCH: u64 = 1 << 26;
/// New threads are followed, forked children are not (Linux 5.13).
pub const INHERIT_THREAD: u64 = 1 << 35;

const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `_IO('$', 5)` and `_IOR('$', 7, __u64 *)`
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_ID: libc::c_ulong = 0x8008_2407;

/// `struct perf_event_attr` as of PERF_ATTR_SIZE_VER3: the first with a clock id.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock_id: i32,
}

const _: () = assert!(size_of::<Attributes>() == 96);

/// Bytes that end every record of these events: pid and tid, time, id.
const TRAILER_BYTES: usize = 24;
const HEADER_BYTES: usize = 8;

const RECORD_LOST: u32 = 2;
const RECORD_SWITCH: u32 = 14;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// Context switches of one thread, and of those it will start, while on one processor.
pub struct Event {
    file: File,
    pub id: u64,
}

impl Event {
    /// Time stamps are `CLOCK_MONOTONIC_RAW`. `optional` are flags that older kernels refuse.
    ///
    /// # Errors
    /// As perf_event_open(2) says: EACCES (perf_event_paranoid), ESRCH (the thread is gone), EMFILE.
    pub fn open(tid: i32, cpu: i32, optional: u64) -> io::Result<Event> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: COUNT_SW_DUMMY,
            sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_ID,
            flags: INHERIT
                | EXCLUDE_KERNEL
                | SAMPLE_ID_ALL
                | USE_CLOCKID
                | CONTEXT_SWITCH
                | optional,
            clock_id: libc::CLOCK_MONOTONIC_RAW,
            ..Attributes::default()
        };
        let file = open(&attributes, tid, cpu)?;
        let mut id = 0u64;
        // SAFETY: this request writes one u64 to the address given.
        if unsafe { libc::ioctl(file.as_raw_fd(), IOC_ID, &mut id) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Event { file, id })
    }

    /// Records of this event go into the ring of `other`, which must be of the same processor.
    pub fn write_into(&self, other: &Event) -> io::Result<()> {
        let other = other.file.as_raw_fd();
        // SAFETY: the request takes a descriptor as a number.
        match unsafe { libc::ioctl(self.file.as_raw_fd(), IOC_SET_OUTPUT, other) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn open(attributes: &Attributes, tid: i32, cpu: i32) -> io::Result<File> {
    open_in(attributes, tid, cpu, -1)
}

fn open_in(attributes: &Attributes, tid: i32, cpu: i32, group: i32) -> io::Result<File> {
    // SAFETY: the attributes are live, their size is in them, and the kernel only reads them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            attributes,
            tid,
            cpu,
            group,
            FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and belongs to nobody else.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

/// An event of a thread (0: of this one) that counts from now on, in user mode; the kernel's own events happen in the
/// kernel. `group`: the first of those that count together.
///
/// # Errors
/// As [`Event::open`]; ENOENT or EOPNOTSUPP: nothing counts it here; EINVAL: not together with the group.
pub fn open_counting(
    tid: i32,
    (kind, config): (u32, u64),
    group: Option<&File>,
) -> io::Result<File> {
    let user_mode = match kind {
        TYPE_SOFTWARE => 0,
        _ => EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
    };
    let attributes = Attributes {
        kind,
        size: size_of::<Attributes>() as u32,
        config,
        flags: user_mode | if group.is_none() { PINNED } else { 0 },
        ..Attributes::default()
    };
    open_in(&attributes, tid, -1, group.map_or(-1, AsRawFd::as_raw_fd))
}

/// What the page of an event says of reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counting {
    /// `cap_user_rdpmc`
    pub user_reads: bool,
    /// `pmc_width`
    pub width: u16,
}

/// Offsets in `struct perf_event_mmap_page`.
const CAPABILITIES: usize = 40;
const PMC_WIDTH: usize = 48;
const CAP_USER_RDPMC: u64 = 1 << 2;

/// Looks into the page of an event that was opened with [`open_counting`].
///
/// # Errors
/// EPERM: more memory than this user may lock (perf_event_mlock_kb, RLIMIT_MEMLOCK).
pub fn counting(event: &File) -> io::Result<Counting> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE,
            libc::PROT_READ,
            libc::MAP_SHARED,
            event.as_raw_fd(),
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both fields lie in the page that was just mapped, aligned to their size; the kernel may write them at any time,
    // hence volatile.
    let (capabilities, width) = unsafe {
        let page = page.cast::<u8>();
        (
            page.add(CAPABILITIES).cast::<u64>().read_volatile(),
            page.add(PMC_WIDTH).cast::<u16>().read_volatile(),
        )
    };
    // SAFETY: the mapping is ours, and nothing borrows from it.
    unsafe { libc::munmap(page, PAGE) };
    Ok(Counting {
        user_reads: capabilities & CAP_USER_RDPMC != 0,
        width,
    })
}

/// How long a thread has run since this was opened.
pub struct TaskClock(File);

impl TaskClock {
    /// # Errors
    /// As [`Event::open`].
    pub fn open(tid: i32) -> io::Result<TaskClock> {
        let attributes = Attributes {
            kind: TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: COUNT_SW_TASK_CLOCK,
            flags: EXCLUDE_KERNEL,
            ..Attributes::default()
        };
        open(&attributes, tid, -1).map(TaskClock)
    }

    /// Also of a thread that runs now.
    ///
    /// # Errors
    /// When the kernel has taken the event away.
    pub fn ns(&self) -> io::Result<u64> {
        let mut word = [0; 8];
        (&self.0).read_exact(&mut word)?;
        Ok(u64::from_le_bytes(word))
    }
}

/// The kernel's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// The thread was taken off (`preempted`: it could have gone on).
    Out {
        tid: i32,
        preempted: bool,
    },
    Back {
        tid: i32,
    },
    /// There was no room for this many records before this one.
    Lost {
        records: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// `CLOCK_MONOTONIC_RAW`
    pub raw_ns: u64,
    /// [`Event::id`] of the event that the thread, or an ancestor of it, was opened with.
    pub event: u64,
    pub said: Said,
}

/// A mapped ring: one page that the kernel and the reader share their positions in, then data.
pub struct Ring {
    base: *mut u8,
    bytes: usize,
    data_bytes: usize,
    /// The mapping lives as long as the event.
    _event: Event,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Ring {}

const PAGE: usize = 4096;
/// Offsets in `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

impl Ring {
    /// `data_pages` must be a power of two.
    ///
    /// # Errors
    /// EPERM: more memory than this user may lock (perf_event_mlock_kb, RLIMIT_MEMLOCK).
    pub fn map(event: Event, data_pages: usize) -> io::Result<Ring> {
        let bytes = (1 + data_pages) * PAGE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring {
            base: base.cast(),
            bytes,
            data_bytes: data_pages * PAGE,
            _event: event,
        })
    }

    pub fn event(&self) -> &Event {
        &self._event
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets are multiples of 8 inside the first page of the mapping, which is
        // page-aligned, lives as long as self, and is only accessed as atomics there.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    /// Takes all that is there, in the order in which it was written.
    pub fn read(&mut self, out: &mut Vec<Switch>) {
        let head = self.position(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.position(DATA_TAIL).load(Ordering::Relaxed);
        let length = head.wrapping_sub(tail).min(self.data_bytes as u64) as usize;
        let mut bytes = vec![0u8; length];
        let from = (tail % self.data_bytes as u64) as usize;
        let first = length.min(self.data_bytes - from);
        // SAFETY: [tail, head) is at most the data area, and the kernel writes nothing there until
        // the tail moves past it; the two parts lie before and after the end of the area, which
        // begins one page into the mapping.
        unsafe {
            let data = self.base.add(PAGE);
            std::ptr::copy_nonoverlapping(data.add(from), bytes.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr().add(first), length - first);
        }
        self.position(DATA_TAIL).store(head, Ordering::Release);
        parse(&bytes, out);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrowed from it outlives self.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|b| b.first_chunk());
    bytes.map_or(0, |b| u64::from_le_bytes(*b))
}

/// Whole records: {type 4, misc 2, size 2, what the type holds, pid 4, tid 4, time 8, id 8}.
fn parse(mut bytes: &[u8], out: &mut Vec<Switch>) {
    while bytes.len() >= HEADER_BYTES {
        let header = word(bytes, 0);
        let (kind, misc) = (header as u32, (header >> 32) as u16);
        let size = (header >> 48) as usize;
        if size < HEADER_BYTES || size > bytes.len() {
            return;
        }
        let (record, rest) = bytes.split_at(size);
        bytes = rest;
        let Some(trailer) = size
            .checked_sub(TRAILER_BYTES)
            .filter(|t| *t >= HEADER_BYTES)
        else {
            continue;
        };
        let tid = (word(record, trailer) >> 32) as i32;
        let said = match kind {
            RECORD_SWITCH if misc & MISC_SWITCH_OUT == 0 => Said::Back { tid },
            RECORD_SWITCH => Said::Out {
                tid,
                preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0,
            },
            RECORD_LOST => Said::Lost {
                records: word(record, 16),
            },
            _ => continue,
        };
        out.push(Switch {
            raw_ns: word(record, trailer + 8),
            event: word(record, trailer + 16),
            said,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, body: &[u64], tid: u32, time: u64) -> Vec<u8> {
        let size = (HEADER_BYTES + 8 * body.len() + TRAILER_BYTES) as u64;
        let header = u64::from(kind) | u64::from(misc) << 32 | size << 48;
        let mut words = vec![header];
        words.extend_from_slice(body);
        words.extend([u64::from(tid) << 32 | 7, time, 99]);
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn records_are_told_apart() {
        let out = MISC_SWITCH_OUT;
        let bytes = [
            record(RECORD_SWITCH, out, &[], 8, 1_000),
            record(RECORD_SWITCH, out | MISC_SWITCH_OUT_PREEMPT, &[], 9, 1_100),
            record(3, 0, &[1, 2], 8, 1_150),
            record(RECORD_LOST, 0, &[99, 17], 8, 1_200),
            record(RECORD_SWITCH, 0, &[], 8, 1_300),
        ]
        .concat();
        let mut found = Vec::new();
        parse(&bytes, &mut found);
        let said: Vec<_> = found.iter().map(|s| (s.raw_ns, s.said)).collect();
        let out = |tid, preempted| Said::Out { tid, preempted };
        let expected = [
            (1_000, out(8, false)),
            (1_100, out(9, true)),
            (1_200, Said::Lost { records: 17 }),
            (1_300, Said::Back { tid: 8 }),
        ];
        assert_eq!(said, expected);
        assert!(found.iter().all(|s| s.event == 99));
    }

    #[test]
    fn a_record_cut_short_ends_the_reading() {
        let mut bytes = record(RECORD_SWITCH, 0, &[], 8, 5);
        bytes.extend(&record(RECORD_SWITCH, 0, &[], 8, 6)[..20]);
        let mut found = Vec::new();
        parse(&bytes, &mut found);
        assert_eq!(found.len(), 1);
    }
}
