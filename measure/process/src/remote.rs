//! System calls made in a stopped thread.
//!
//! One `SETREGS` sends the thread through `syscall; ret` and then `rt_sigreturn` on a prepared
//! frame, so that it finishes and restores itself if we are killed at any instant. Normally the
//! thread is caught behind the system call and sent into the next one from there; behind the last
//! it is brought back into an interrupt stop, where its own registers are written back: then the
//! kernel still does its own restart of whatever call was interrupted, as if nothing had happened.
use super::AttachError;
use super::cgroup;
use super::fault;
use super::gadget::{self, Gadgets};
use super::memory::TargetMemory;
use super::procfs::Status;
use super::ptrace::{self, Regs, Waited};
use super::remote_priority::{Before, Raised};
use super::seccomp::Filters;
use super::stop_timeout::{wait_for, wait_for_any};
use super::{scratch, sigframe};
use crate::maps::Mapping;
use nix::libc;
use std::cell::{Cell, RefCell};

/// A filter sees the address behind the instruction.
const SYSCALL_BYTES: u64 = 2;
/// Of a thread that steps itself.
const TRAP_FLAG: u64 = 1 << 8;
/// Room for one short string behind the frame.
const TEXT_BYTES: u64 = 64;

/// What is needed to bring the thread back.
pub(super) struct Remote {
    tid: i32,
    original: Regs,
    mask: u64,
    frame_at: u64,
    /// A frame before that one, through which the thread lowers its own priority: it may be raised.
    lowering: Cell<Option<(Before, u64)>>,
    raised: RefCell<Option<Raised>>,
    text_at: u64,
    gadgets: Gadgets,
    filters: Filters,
    /// The thread is caught behind a call.
    behind_call: Cell<bool>,
}

impl Remote {
    pub(super) fn prepare(
        pid: i32,
        tid: i32,
        original: Regs,
        gadgets: Gadgets,
        memory: &TargetMemory,
        mappings: &[Mapping],
    ) -> Result<Remote, AttachError> {
        let failed = |what| AttachError::ptrace(pid, tid, what);
        let dispatches = ptrace::has_user_dispatch(tid);
        if dispatches.map_err(failed("reading its system call dispatch"))? {
            return Err(AttachError::UserDispatch { pid, tid });
        }
        let status = Status::read(pid, tid).map_err(|source| AttachError::Proc { pid, source })?;
        let filters = Filters::of(pid, tid, &status)?;
        if let Some(nr) = forbidden(&filters, &gadgets) {
            return Err(AttachError::SeccompForbids { pid, nr });
        }
        let mask = ptrace::signal_mask(tid).map_err(failed("reading the signal mask"))?;
        let xstate = ptrace::xstate(tid).map_err(failed("reading the vector registers"))?;
        let calls = sigframe::CALL_BYTES as u64;
        let len = calls + sigframe::needed(xstate.len()) as u64 + TEXT_BYTES;
        let first_at = scratch::find(pid, memory, mappings, original.rsp, len)?;
        let frame_at = first_at + calls;
        let zeros_at = first_at + sigframe::CALL_ZEROS as u64;
        let lowering = Before::of(tid, &status).and_then(|before| {
            let (nr, args) = before.own_call(zeros_at);
            let regs = to_call(&original, &gadgets, frame_at, nr, args);
            let allowed = filters.allow(nr, gadgets.syscall_ret + SYSCALL_BYTES, args);
            allowed.then(|| (before, sigframe::build_call(gadgets.sigreturn, &regs)))
        });
        let first = lowering.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        let last = sigframe::build(frame_at, gadgets.sigreturn, &original, mask, xstate);
        let bytes = [first, &last].concat();
        memory
            .write(frame_at - first.len() as u64, &bytes)
            .map_err(|source| AttachError::Memory { pid, source })?;
        fault::point(fault::FRAME_WRITTEN);
        Ok(Remote {
            tid,
            original,
            mask,
            frame_at,
            lowering: Cell::new(lowering.map(|(before, _)| (before, first_at))),
            raised: RefCell::default(),
            text_at: first_at + len - TEXT_BYTES,
            gadgets,
            filters,
            behind_call: Cell::new(false),
        })
    }

    pub(super) fn tid(&self) -> i32 {
        self.tid
    }

    /// Puts a NUL-terminated string where the target can read it; the next one replaces it.
    pub(super) fn text(
        &self,
        pid: i32,
        memory: &TargetMemory,
        text: &str,
    ) -> Result<u64, AttachError> {
        let room = TEXT_BYTES as usize - 1;
        let bytes: Vec<u8> = text.bytes().take(room).chain([0]).collect();
        let written = memory.write(self.text_at, &bytes);
        written.map_err(|source| AttachError::Memory { pid, source })?;
        Ok(self.text_at)
    }

    /// Raw return value of the system call.
    pub(super) fn call(&self, pid: i32, nr: i64, args: [u64; 6]) -> Result<i64, AttachError> {
        let tid = self.tid;
        let failed = |what| AttachError::ptrace(pid, tid, what);
        if !self
            .filters
            .allow(nr, self.gadgets.syscall_ret + SYSCALL_BYTES, args)
        {
            return Err(AttachError::SeccompForbids { pid, nr });
        }
        let raised = self.raised.borrow().is_some();
        let way_back = match self.lowering.get() {
            Some((_, at)) if raised => at,
            _ => self.frame_at,
        };
        let regs = to_call(&self.original, &self.gadgets, way_back, nr, args);
        ptrace::set_regs(tid, &regs).map_err(failed("setting registers"))?;
        fault::point(fault::CALL_SET);
        // With every signal blocked nothing but SIGKILL can come between; the frame restores the
        // mask if we die. The registers go first: until then the thread would run on as it was.
        if !self.behind_call.get() {
            ptrace::set_signal_mask(tid, u64::MAX).map_err(failed("blocking signals"))?;
        }
        if let Some((before, at)) = self.lowering.get().filter(|_| !raised) {
            ptrace::set_regs(tid, &Regs { rsp: at, ..regs })
                .map_err(failed("setting registers"))?;
            let now = before.raise();
            if now.is_none() {
                ptrace::set_regs(tid, &regs).map_err(failed("setting registers"))?;
                self.lowering.set(None);
            }
            self.raised.replace(now);
        }
        fault::point(fault::RAISED);
        self.enter(pid)?;
        fault::point(fault::CALL_ENTERED);
        self.step_to(pid, Waited::SystemCall)?;
        let result = ptrace::regs(tid).map_err(failed("reading registers"))?.rax as i64;
        self.behind_call.set(true);
        fault::point(fault::CALL_LEFT);
        Ok(result)
    }

    /// From behind the last call into an interrupt stop. Two context switches, which would be half of
    /// a call's price if each did it.
    fn trap(&self, pid: i32) -> Result<(), AttachError> {
        if !self.behind_call.replace(false) {
            return Ok(());
        }
        let tid = self.tid;
        let failed = |what| AttachError::ptrace(pid, tid, what);
        ptrace::interrupt(tid).map_err(failed("interrupting"))?;
        ptrace::cont(tid, 0).map_err(failed("continuing"))?;
        wait_for(pid, tid, Waited::Stopped)?;
        fault::point(fault::CALL_TRAPPED);
        Ok(())
    }

    /// Into the call. A process that is frozen meanwhile does not come to it: its thread is stopped
    /// where it is, so that its own state can be written back.
    fn enter(&self, pid: i32) -> Result<(), AttachError> {
        let entered = self.step_to(pid, Waited::SystemCall);
        let Err(AttachError::DoesNotStop { .. }) = entered else {
            return entered;
        };
        let tid = self.tid;
        let failed = |what| AttachError::ptrace(pid, tid, what);
        ptrace::interrupt(tid).map_err(failed("interrupting"))?;
        match wait_for_any(pid, tid)? {
            // It has come just now; the interrupt is passed over on the way out of the call.
            Waited::SystemCall => Ok(()),
            _ => match cgroup::is_frozen(pid) {
                true => Err(AttachError::Frozen { pid }),
                false => entered,
            },
        }
    }

    fn step_to(&self, pid: i32, wanted: Waited) -> Result<(), AttachError> {
        let tid = self.tid;
        ptrace::to_syscall(tid).map_err(AttachError::ptrace(pid, tid, "continuing"))?;
        wait_for(pid, tid, wanted)
    }

    /// Writes the thread's own state back.
    pub(super) fn restore(&self, pid: i32, regs: &Regs) -> Result<(), AttachError> {
        self.trap(pid)?;
        // While its registers still lead it through the frames that would do it.
        self.raised.replace(None);
        let tid = self.tid;
        let failed = |what| AttachError::ptrace(pid, tid, what);
        // The mask first: until the registers follow, the frame would restore it too.
        ptrace::set_signal_mask(tid, self.mask).map_err(failed("restoring the signal mask"))?;
        ptrace::set_regs(tid, regs).map_err(failed("restoring registers"))?;
        fault::point(fault::RESTORED_REGISTERS);
        Ok(())
    }
}

/// Registers with which a thread makes a call and returns to the frame at `way_back`.
fn to_call(own: &Regs, gadgets: &Gadgets, way_back: u64, nr: i64, args: [u64; 6]) -> Regs {
    Regs {
        rip: gadgets.syscall_ret,
        rsp: way_back,
        rax: nr as u64,
        rdi: args[0],
        rsi: args[1],
        rdx: args[2],
        r10: args[3],
        r8: args[4],
        r9: args[5],
        // A step's SIGTRAP, which is blocked by then, would end the process (force_sig_info_to_task, kernel/signal.c).
        eflags: own.eflags & !TRAP_FLAG,
        // No system call is in progress: nothing to restart.
        orig_rax: u64::MAX,
        ..*own
    }
}

/// A thread whose recorder was killed before it made a call makes it when it runs next: lets it,
/// and stops it again where it had been. `None`: no call was begun.
pub(super) fn finish_begun(
    pid: i32,
    tid: i32,
    regs: &Regs,
    gadgets: Gadgets,
    memory: &TargetMemory,
) -> Result<Option<Regs>, AttachError> {
    let is_begun = |regs: &Regs| {
        let mut returns_to = [0u8; 8];
        regs.rip == gadgets.syscall_ret
            && regs.orig_rax == u64::MAX
            && memory.read(regs.rsp, &mut returns_to).is_ok()
            && u64::from_le_bytes(returns_to) == gadgets.sigreturn
    };
    if !is_begun(regs) {
        return Ok(None);
    }
    let failed = |what| AttachError::ptrace(pid, tid, what);
    // The frame behind a call may lead to one more: lowering the thread's own priority.
    for _ in 0..2 {
        // Into the call and out of it, into `rt_sigreturn` and out of it.
        for _ in 0..4 {
            ptrace::to_syscall(tid).map_err(failed("continuing"))?;
            wait_for(pid, tid, Waited::SystemCall)?;
        }
        let now = ptrace::regs(tid).map_err(failed("reading registers"))?;
        if !is_begun(&now) {
            break;
        }
    }
    ptrace::interrupt(tid).map_err(failed("interrupting"))?;
    ptrace::cont(tid, 0).map_err(failed("continuing"))?;
    wait_for(pid, tid, Waited::Stopped)?;
    ptrace::regs(tid)
        .map(Some)
        .map_err(failed("reading registers"))
}

/// The first call that attaching and detaching make, as they make it, and a filter forbids: known
/// before anything is begun, or we could not take back what was done.
fn forbidden(filters: &Filters, gadgets: &Gadgets) -> Option<i64> {
    const AT: u64 = 0x1000_0000;
    const LEN: u64 = 4096;
    let shared = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as u64;
    let code = (libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE) as u64;
    let private = code | libc::MAP_ANONYMOUS as u64;
    let memfd = (libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) as u64;
    let rw = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let rx = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let wipe = libc::MADV_WIPEONFORK as u64;
    let (here, fd) = (gadgets.syscall_ret + SYSCALL_BYTES, 3);
    [
        (libc::SYS_rt_sigreturn, gadgets.sigreturn_end, [0; 6]),
        (libc::SYS_memfd_create, here, [AT, memfd, 0, 0, 0, 0]),
        (libc::SYS_mmap, here, [AT, LEN, rx, code, fd, 0]),
        (libc::SYS_mmap, here, [AT, LEN, rw, shared, fd, 0]),
        (libc::SYS_mmap, here, [AT, LEN, rw, private, u64::MAX, 0]),
        (libc::SYS_madvise, here, [AT, LEN, wipe, 0, 0, 0]),
        (libc::SYS_munmap, here, [AT, LEN, 0, 0, 0, 0]),
        (libc::SYS_close, here, [fd, 0, 0, 0, 0, 0]),
    ]
    .into_iter()
    .find_map(|(nr, ip, args)| (!filters.allow(nr, ip, args)).then_some(nr))
}

pub(super) fn gadgets(pid: i32, memory: &TargetMemory) -> Result<Gadgets, AttachError> {
    gadget::find(pid, memory)
}

const _: () = assert!(libc::SYS_rt_sigreturn == 15);
