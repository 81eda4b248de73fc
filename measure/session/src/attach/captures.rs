//! What `record` says of captured values: each with the way it is read.
use crate::status::text_line;
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace};
use hopscope_probe::counters::read_tsc;
use hopscope_probe::locate::basename;
use hopscope_probe::plan::Plan;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use std::io::{self, IoSliceMut, Write};

/// Most functions whose captures the closing summary names; the dry run names all.
const FUNCTIONS_NAMED: usize = 16;

/// `frame->n (u32): own load, where the function itself has just loaded it`
pub(super) fn described(capture: &CaptureEntry) -> String {
    let sign = if capture.signed { 'i' } else { 'u' };
    let how = match (capture.method, capture.at) {
        (CaptureMethod::Register, CapturePlace::Return) => "in the register that returns it",
        (CaptureMethod::Register, _) => "in its register at the entry",
        (CaptureMethod::OwnLoad, _) => "where the function itself has just loaded it",
        (CaptureMethod::CheckedCopy, _) => "at the entry, copied by the kernel: a system call each",
        (CaptureMethod::PlainLoad, _) => "at the entry, by an unchecked load",
        (CaptureMethod::Counter, _) => "a counter, at the entry and at the end",
        (CaptureMethod::Callee, _) => "the address that is called",
    };
    let most = match capture.elements_max {
        1 => String::new(),
        n => format!(", at most {n} elements"),
    };
    format!("{} ({sign}{}{most}): {how}", capture.name, capture.bits)
}

const COPIES: usize = 1001;

/// What one checked copy takes here, in ticks (median), tried on this process: the target would
/// notice it. `None` without checked copies, or when the kernel has no such call.
pub(crate) fn copy_cost_ticks(plan: &Plan) -> Option<u64> {
    let copied = |c: &CaptureEntry| c.method == CaptureMethod::CheckedCopy;
    if !plan.captures.iter().any(copied) {
        return None;
    }
    let from = 1u64;
    let remote = [RemoteIoVec {
        base: std::ptr::from_ref(&from).addr(),
        len: size_of::<u64>(),
    }];
    let mut ticks = Vec::with_capacity(COPIES);
    for _ in 0..COPIES {
        let mut to = [0u8; size_of::<u64>()];
        let begin = read_tsc().0;
        process_vm_readv(
            nix::unistd::getpid(),
            &mut [IoSliceMut::new(&mut to)],
            &remote,
        )
        .ok()?;
        ticks.push(read_tsc().0.saturating_sub(begin));
    }
    ticks.sort_unstable();
    Some(ticks[COPIES / 2])
}

pub(crate) fn print(out: &mut impl Write, plan: &Plan) -> io::Result<()> {
    let name = |id: hopscope_event::FunctionId| {
        let f = &plan.functions[id.0 as usize];
        let module = basename(plan.modules[f.module.0 as usize].path.as_ref());
        format!("{module}!{}", f.name)
    };
    let asked_for =
        |c: &&CaptureEntry| !matches!(c.method, CaptureMethod::Counter | CaptureMethod::Callee);
    let values = || plan.captures.iter().filter(asked_for);
    for counter in &plan.counters {
        let name = format!("@{}", counter.name);
        let at_entries = |c: &&CaptureEntry| c.name == name && c.at == CapturePlace::Entry;
        let functions = plan.captures.iter().filter(at_entries).count();
        let what = match counter.emulated {
            true => "EMULATED: answered by the target itself, in a test",
            false if counter.event.is_software() => "by the kernel",
            false => "by the processor, in user mode",
        };
        text_line!(
            out,
            "counted {what}: {name} of the calls of {functions} functions"
        )?;
    }
    let mut functions: Vec<_> = values().map(|c| c.function).collect();
    functions.dedup();
    for id in functions.iter().take(FUNCTIONS_NAMED) {
        for capture in values().filter(|c| c.function == *id) {
            text_line!(out, "captured of {}: {}", name(*id), described(capture))?;
        }
    }
    if let Some(ticks) = copy_cost_ticks(plan) {
        text_line!(out, "each copy by the kernel takes {ticks} ticks here")?;
    }
    if functions.len() > FUNCTIONS_NAMED {
        let more = functions.len() - FUNCTIONS_NAMED;
        text_line!(
            out,
            "captured of {more} more functions; --dry-run names each"
        )?;
    }
    for (id, why) in plan.not_captured.iter().take(FUNCTIONS_NAMED) {
        text_line!(out, "not captured of {}: {why}", name(*id))?;
    }
    if plan.not_captured.len() > FUNCTIONS_NAMED {
        let more = plan.not_captured.len() - FUNCTIONS_NAMED;
        text_line!(
            out,
            "not captured in {more} more places; --dry-run names each"
        )?;
    }
    Ok(())
}
