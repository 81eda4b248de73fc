//! Maps the arena into the target: a handful of remote system calls on one stopped thread, while
//! the others run. Nothing of the target's own code or data changes.
use super::error::LiveError;
use super::table::{ARENA_NAME, Area, POOL_NAME, PatchTable, State};
use crate::attach::{StoppedProcess, fault};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;

/// The two memfds as the recorder sees them.
pub struct Mapped {
    pub arena: File,
    pub pool: File,
}

const MFD_NOEXEC_SEAL: u64 = 8;
const MFD_EXEC: u64 = 16;

/// A remote call that reports the target's errno.
fn call(
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
/// anything else is mapped, so that whoever finds the arena can undo the rest.
pub fn map(stopped: &mut StoppedProcess, table: &PatchTable) -> Result<Mapped, LiveError> {
    let mut undo = Undo::default();
    let result = map_all(stopped, table, &mut undo);
    if result.is_err() {
        undo.run(stopped);
    }
    result
}

fn map_all(
    stopped: &mut StoppedProcess,
    table: &PatchTable,
    undo: &mut Undo,
) -> Result<Mapped, LiveError> {
    let pid = stopped.pid();
    let open = |fd: u64, len: u64| {
        let path = format!("/proc/{pid}/fd/{fd}");
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(LiveError::io(pid, "opening the memfd"))?;
        file.set_len(len)
            .map_err(LiveError::io(pid, "sizing the memfd"))?;
        Ok::<File, LiveError>(file)
    };
    let shared = libc::MAP_SHARED as u64;
    let arena_fd = undo.memfd(stopped, ARENA_NAME, MFD_EXEC)?;
    fault::point(fault::CREATED_ARENA);
    let code_len: u64 = table.segments.iter().map(|s| s.len).sum();
    let arena = open(arena_fd, table.header.len + code_len)?;
    super::install::write_table(pid, &arena, table, State::Prepared)?;
    undo.map(
        stopped,
        table.header,
        libc::PROT_READ as u64,
        shared,
        arena_fd,
        0,
    )?;
    fault::point(fault::MAPPED_HEADER);

    let rw = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    undo.map(stopped, table.contexts, rw, anonymous, u64::MAX, 0)?;
    let wipe = libc::MADV_WIPEONFORK as u64;
    let area = [table.contexts.at, table.contexts.len, wipe, 0, 0, 0];
    call(stopped, "madvise(MADV_WIPEONFORK)", libc::SYS_madvise, area)?;
    let mut offset = table.header.len;
    for segment in &table.segments {
        let rx = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        undo.map(stopped, *segment, rx, shared, arena_fd, offset)?;
        offset += segment.len;
    }
    let pool_fd = undo.memfd(stopped, POOL_NAME, MFD_NOEXEC_SEAL)?;
    let pool = open(pool_fd, table.pool.len)?;
    undo.map(stopped, table.pool, rw, shared, pool_fd, 0)?;
    fault::point(fault::MAPPED_ARENA);
    for fd in std::mem::take(&mut undo.fds) {
        call(stopped, "close", libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
    }
    fault::point(fault::CLOSED_MEMFDS);
    Ok(Mapped { arena, pool })
}

/// What has been made in the target so far.
#[derive(Default)]
struct Undo {
    areas: Vec<Area>,
    fds: Vec<u64>,
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
        let args = [area.at, area.len, protection, flags, fd, offset];
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
        let cloexec = libc::MFD_CLOEXEC as u64;
        let fd = match create(stopped, cloexec | flag) {
            // Kernels before 6.3 do not know the flag and need none.
            Err(LiveError::Remote { source, .. })
                if source.raw_os_error() == Some(libc::EINVAL) =>
            {
                create(stopped, cloexec)?
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
    let pid = stopped.pid();
    let names = [ARENA_NAME, POOL_NAME].map(|n| format!("/memfd:{n} (deleted)"));
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let open = open.map_err(LiveError::io(pid, "listing its descriptors"))?;
    for entry in open.flatten() {
        let link = std::fs::read_link(entry.path());
        let ours = link.is_ok_and(|l| names.iter().any(|n| l.as_os_str() == n.as_str()));
        if let (true, Some(fd)) = (
            ours,
            entry.file_name().to_str().and_then(|n| n.parse().ok()),
        ) {
            call(stopped, "close", libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
        }
    }
    Ok(())
}
