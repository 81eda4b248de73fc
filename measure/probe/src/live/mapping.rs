//! Maps the arena into the target: a handful of remote system calls on one stopped thread, while
//! the others run. Nothing of the target's own code or data changes.
use super::arena_table;
use super::error::LiveError;
use super::found;
use super::table::{ARENA_NAME, Area, POOL_NAME, PatchTable};
use hopscope_process::maps::{self, Mapping};
use hopscope_process::procfs::Status;
use hopscope_process::{StoppedProcess, fault, memfd};
use nix::libc;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

/// The memfds as the recorder sees them.
pub struct Mapped {
    pub arena: File,
    /// `None`: what has no rings.
    pub pool: Option<File>,
}

/// The call that maps the page of an event.
pub(super) const MAP_EVENT: &str = "mmap of an event";

const MFD_NOEXEC_SEAL: u64 = 8;
const MFD_EXEC: u64 = 16;

/// A remote call that reports the target's errno.
pub(super) fn call(
    stopped: &mut StoppedProcess,
    name: &'static str,
    nr: i64,
    args: [u64; 6],
) -> Result<u64, LiveError> {
    let raw = stopped.remote_call(nr, args)?;
    if (-4095..0).contains(&raw) {
        let source = io::Error::from_raw_os_error(-raw as i32);
        let hint = match source.raw_os_error() {
            Some(libc::ENOMEM) => "; a memory limit of the target? try a smaller --buffer",
            // mlock_future_ok() in mm/mmap.c
            Some(libc::EAGAIN) if name == "mmap" => {
                "; the target locks all its memory (mlockall) and may lock no more (RLIMIT_MEMLOCK): try a smaller --buffer or fewer --threads"
            }
            Some(libc::EPERM) if name == MAP_EVENT => {
                "; raise RLIMIT_MEMLOCK of the target or: sysctl kernel.perf_event_mlock_kb=2064"
            }
            Some(libc::EMFILE) => "; the target has no descriptor left",
            Some(libc::EACCES | libc::EPERM) => {
                "; executable memfds may be forbidden (vm.memfd_noexec, SELinux)"
            }
            _ => "",
        };
        return Err(LiveError::Remote {
            pid: stopped.pid(),
            call: name,
            source,
            hint,
        });
    }
    Ok(raw as u64)
}

/// Maps everything of `table`, which must hold all places already: it is in the arena before
/// anything else is mapped, so that whoever finds the arena can undo the rest. `header` is what the
/// table is as bytes, made before the thread was stopped.
pub fn map(
    stopped: &mut StoppedProcess,
    table: &PatchTable,
    header: &[u8],
) -> Result<Mapped, LiveError> {
    let mut undo = Undo::default();
    let result = map_all(stopped, table, header, &mut undo);
    if result.is_err() {
        undo.run(stopped);
    }
    result
}

fn map_all(
    stopped: &mut StoppedProcess,
    table: &PatchTable,
    header: &[u8],
    undo: &mut Undo,
) -> Result<Mapped, LiveError> {
    let (pid, tid) = (stopped.pid(), stopped.tids()[0]);
    // Forked children share what is mapped shared, whatever rights they give up later: through a
    // shared mapping of the copies they could change what their parent runs.
    let private = libc::MAP_PRIVATE as u64;
    let arena_fd = undo.memfd(stopped, ARENA_NAME, MFD_EXEC)?;
    fault::point(fault::CREATED_ARENA);
    let code_len: u64 = table.segments.iter().map(|s| s.len).sum();
    let arena = take(pid, tid, arena_fd, table.header.len + code_len)?;
    arena_table::write_table_bytes(pid, &arena, table, header)?;
    let before = locked_kib(pid);
    let read_only = libc::PROT_READ as u64;
    undo.map(stopped, table.header, read_only, private, arena_fd, 0)?;
    fault::point(fault::MAPPED_HEADER);
    // mlockall(MCL_FUTURE): whatever is mapped from now on would be filled with memory at once, while
    // the thread waits, and locked.
    undo.unlock = locked_kib(pid) > before;
    if undo.unlock {
        let area = [table.header.at, table.header.len, 0, 0, 0, 0];
        call(stopped, "munlock", libc::SYS_munlock, area)?;
    }

    let mut offset = table.header.len;
    for segment in &table.segments {
        let rx = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        undo.map(stopped, *segment, rx, private, arena_fd, offset)?;
        offset += segment.len;
    }
    let pool = match table.shares_rings {
        true => None,
        false => map_data(stopped, table, undo)?,
    };
    fault::point(fault::MAPPED_ARENA);
    for fd in std::mem::take(&mut undo.fds) {
        call(stopped, "close", libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
    }
    fault::point(fault::CLOSED_MEMFDS);
    Ok(Mapped { arena, pool })
}

/// Contexts, rings and pages of events.
fn map_data(
    stopped: &mut StoppedProcess,
    table: &PatchTable,
    undo: &mut Undo,
) -> Result<Option<File>, LiveError> {
    let private = libc::MAP_PRIVATE as u64;
    let rw = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let anonymous = private | libc::MAP_ANONYMOUS as u64;
    undo.map(stopped, table.contexts, rw, anonymous, u64::MAX, 0)?;
    // Either keeps the kernel from merging it with what lies beside it. A forked child has the copies of its parent
    // on its stack, and needs their tables.
    let (name, advice) = match table.answers_unwinders {
        true => ("madvise(MADV_DONTDUMP)", libc::MADV_DONTDUMP),
        false => ("madvise(MADV_WIPEONFORK)", libc::MADV_WIPEONFORK),
    };
    let area = [
        table.contexts.at,
        table.contexts.len,
        advice as u64,
        0,
        0,
        0,
    ];
    call(stopped, name, libc::SYS_madvise, area)?;
    if table.answers_unwinders {
        return Ok(None);
    }
    let pool_fd = undo.memfd(stopped, POOL_NAME, MFD_NOEXEC_SEAL)?;
    let pages = table.counter_pages;
    let (pid, tid) = (stopped.pid(), stopped.tids()[0]);
    let pool = take(pid, tid, pool_fd, table.pool.len + pages.len)?;
    let shared = libc::MAP_SHARED as u64;
    undo.map(stopped, table.pool, rw, shared, pool_fd, 0)?;
    if pages.len > 0 {
        // Kept free for what is mapped there later, under a name by which it is known for ours.
        let none = libc::PROT_NONE as u64;
        undo.map(stopped, pages, none, shared, pool_fd, table.pool.len)?;
    }
    // A core file would hold all rings, and nothing reads them there: the recorder saves them.
    let not = libc::MADV_DONTDUMP as u64;
    let rings = [table.pool.at, table.pool.len, not, 0, 0, 0];
    call(stopped, "madvise(MADV_DONTDUMP)", libc::SYS_madvise, rings)?;
    Ok(Some(pool))
}

fn take(pid: i32, tid: i32, fd: u64, len: u64) -> Result<File, LiveError> {
    memfd::take(pid, tid, fd, len).map_err(LiveError::io(pid, "taking a memfd from it"))
}

/// Memory that the target has locked.
fn locked_kib(pid: i32) -> u64 {
    let status = Status::read(pid, pid).ok();
    let field = status.as_ref().and_then(|s| s.field("VmLck"));
    let kib = field.and_then(|f| f.strip_suffix(" kB")?.trim().parse().ok());
    kib.unwrap_or(0)
}

/// Compares what the target has mapped with what was taken from it: it mapped what its descriptors
/// referred to then, which need not be the same.
pub fn verify(pid: i32, table: &PatchTable, mapped: &Mapped) -> Result<(), LiveError> {
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let inode = |file: &File| {
        let metadata = file.metadata();
        let metadata = metadata.map_err(LiveError::io(pid, "looking at the memfd"))?;
        Ok::<u64, LiveError>(metadata.ino())
    };
    let mut areas = Vec::new();
    if let Some(pool) = &mapped.pool {
        areas.push((table.pool, inode(pool)?, 0));
        if table.counter_pages.len > 0 {
            areas.push((table.counter_pages, inode(pool)?, table.pool.len));
        }
    }
    let (arena, mut offset) = (inode(&mapped.arena)?, 0);
    for area in std::iter::once(&table.header).chain(&table.segments) {
        areas.push((*area, arena, offset));
        offset += area.len;
    }
    let wrong = areas
        .into_iter()
        .find(|(area, inode, offset)| !shows(&mappings, *area, *inode, *offset));
    wrong.map_or(Ok(()), |(area, ..)| {
        Err(LiveError::NotMapped { pid, at: area.at })
    })
}

/// Whether all of `area` is mapped from `offset` on of the memfd with this inode.
fn shows(mappings: &[Mapping], area: Area, inode: u64, offset: u64) -> bool {
    let around = |m: &&Mapping| m.range.start <= area.at && area.at + area.len <= m.range.end;
    mappings.iter().find(around).is_some_and(|m| {
        m.is_memfd() && m.inode == inode && m.offset + (area.at - m.range.start) == offset
    })
}

/// What has been made in the target so far.
#[derive(Default)]
struct Undo {
    areas: Vec<Area>,
    fds: Vec<u64>,
    /// The target locks what it maps.
    unlock: bool,
}

impl Undo {
    fn map(
        &mut self,
        stopped: &mut StoppedProcess,
        area: Area,
        protection: u64,
        flags: u64,
        fd: u64,
        offset: u64,
    ) -> Result<(), LiveError> {
        let flags = flags | libc::MAP_FIXED_NOREPLACE as u64;
        // Without access nothing can be filled in.
        let first = if self.unlock { 0 } else { protection };
        let args = [area.at, area.len, first, flags, fd, offset];
        let at = call(stopped, "mmap", libc::SYS_mmap, args)?;
        self.areas.push(Area { at, len: area.len });
        if at != area.at {
            // A kernel before 4.17 ignores MAP_FIXED_NOREPLACE.
            let source = io::Error::from_raw_os_error(libc::EEXIST);
            return Err(LiveError::Remote {
                pid: stopped.pid(),
                call: "mmap",
                source,
                hint: "",
            });
        }
        if self.unlock {
            let all = [area.at, area.len, 0, 0, 0, 0];
            call(stopped, "munlock", libc::SYS_munlock, all)?;
            let allowed = [area.at, area.len, protection, 0, 0, 0];
            call(stopped, "mprotect", libc::SYS_mprotect, allowed)?;
        }
        Ok(())
    }

    fn memfd(
        &mut self,
        stopped: &mut StoppedProcess,
        name: &str,
        flag: u64,
    ) -> Result<u64, LiveError> {
        let name = stopped.remote_text(name)?;
        let create = |stopped: &mut StoppedProcess, flags: u64| {
            call(
                stopped,
                "memfd_create",
                libc::SYS_memfd_create,
                [name, flags, 0, 0, 0, 0],
            )
        };
        let flags = (libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) as u64;
        let fd = match create(stopped, flags | flag) {
            // Kernels before 6.3 do not know the flag and need none.
            Err(LiveError::Remote { source, .. })
                if source.raw_os_error() == Some(libc::EINVAL) =>
            {
                create(stopped, flags)?
            }
            other => other?,
        };
        self.fds.push(fd);
        Ok(fd)
    }

    fn run(self, stopped: &mut StoppedProcess) {
        for fd in self.fds {
            if let Err(e) = call(stopped, "close", libc::SYS_close, [fd, 0, 0, 0, 0, 0]) {
                log::warn!("undoing a failed attach: {e}");
            }
        }
        for area in self.areas {
            if let Err(e) = unmap(stopped, area) {
                log::warn!("undoing a failed attach: {e}");
            }
        }
    }
}

/// Takes away what [`map`] has mapped of `table`.
pub fn undo(stopped: &mut StoppedProcess, table: &PatchTable) {
    let data = table.data().into_iter().chain([table.header]);
    let mapped = table.segments.iter().copied().chain(data).collect();
    let undo = Undo {
        areas: mapped,
        ..Undo::default()
    };
    undo.run(stopped);
}

pub fn unmap(stopped: &mut StoppedProcess, area: Area) -> Result<(), LiveError> {
    call(
        stopped,
        "munmap",
        libc::SYS_munmap,
        [area.at, area.len, 0, 0, 0, 0],
    )
    .map(drop)
}

/// Closes descriptors of our memfds that a recorder, killed between two calls, left open.
pub fn close_leftovers(stopped: &mut StoppedProcess) -> Result<(), LiveError> {
    for fd in found::own_descriptors(stopped.pid()) {
        call(stopped, "close", libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_mapping_in_the_place_is_seen() {
        let (major, minor) = memfd::device().unwrap();
        let area = Area {
            at: 0x10000,
            len: 0x2000,
        };
        let line = |range: &str, offset: &str, device: &str, inode: u64| {
            let name = "/memfd:hopscope-code (deleted)";
            maps::parse(&format!("{range} r-xp {offset} {device} {inode} {name}\n"))
        };
        let memfds = format!("{major:02x}:{minor:02x}");
        let is_there = |mappings: &[Mapping]| shows(mappings, area, 7, 0x3000);
        assert!(is_there(&line("10000-12000", "00003000", &memfds, 7)));
        assert!(is_there(&line("f000-13000", "00002000", &memfds, 7)));
        for other in [
            line("10000-12000", "00003000", &memfds, 8),
            line("10000-12000", "00002000", &memfds, 7),
            line("10000-11000", "00003000", &memfds, 7),
            line("20000-22000", "00003000", &memfds, 7),
            // A file of that name.
            line("10000-12000", "00003000", "fe:00", 7),
        ] {
            assert!(!is_there(&other), "{other:?}");
        }
    }
}
