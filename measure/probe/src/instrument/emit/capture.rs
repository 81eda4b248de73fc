//! Probes that take values along.
//!
//! All slots of a probe are reserved by one `xadd`, so that what a signal handler's probes store
//! comes before or after them: the reader finds the values of an entry right behind its record,
//! those of a return right before the exit's. Registers: r8 = ring header, r9 = counter of the
//! slot to be stored, rax = the value; rcx, rdx, r10 are scratch. The entry's clock is read last,
//! the exit's first, so that the time of a call does not contain its captures. Counters are read next to the clock.
pub(super) mod call;
mod counter;
mod emitter;
mod read;

use super::probe::{self, Live, ProbeConfig, Site};
use super::slow::Slow;
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::capture::{Capture, Reg, Source};
use emitter::Emitter;
use hopscope_event::record::{FunctionId, RecordKind, STRIDE};
use iced_x86::code_asm::*;

/// What a captured probe is made with beside its site.
#[derive(Clone, Copy)]
pub struct Captured<'a> {
    pub captures: &'a [Capture],
    /// [`super::checked_copy::routine`]; there when a capture needs it.
    pub copy: Option<Label>,
}
/// An entry probe and the values captured there.
pub fn entry(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    site: Site,
    captured: Captured<'_>,
) {
    let done = asm.label();
    let mut e = Emitter::new(asm, zone, config, captured.copy, site.function);
    e.begin(
        &site,
        &[Reg::RSI, Reg::RDI, Reg::R8, Reg::R9, Reg::R10, Reg::R11],
        slow,
        done,
    );
    let arrays = |c: &&Capture| matches!(c.source, Source::Array(_));
    let slots = 1 + captured.captures.len() - captured.captures.iter().filter(arrays).count();
    e.code(|c| c.mov(r9d, slots as u32));
    let mut pushed = Vec::new();
    for capture in captured.captures {
        pushed.push(e.frame.below);
        if let Source::Array(array) = &capture.source {
            e.count(capture, array);
        }
    }
    e.code(|c| {
        c.mov(rdx, r9)?;
        c.shl(rdx, STRIDE.ilog2())
    });
    e.reserve();
    // The entry's own slot is stored last.
    e.code(|c| {
        c.push(rdx)?;
        c.lea(r9, rdx + STRIDE as i32)
    });
    e.frame.below += 8;
    for (capture, pushed) in captured.captures.iter().zip(pushed) {
        match &capture.source {
            Source::Scalar(chain) => e.capture(capture, chain),
            Source::Array(array) => e.elements(capture, array, pushed),
            // What is counted begins when all else is done.
            Source::Counter(_) | Source::Return => {}
        }
    }
    e.counters(captured.captures);
    e.code(|c| c.mov(r9, qword_ptr(rsp)));
    e.record(RecordKind::Entry, rax);
    e.end(&site, done);
}

/// An exit probe and what is taken along there, if anything: counters, and values that are in rax.
pub fn exit(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    site: Site,
    captures: &[Capture],
) {
    if captures.is_empty() {
        return probe::probe(asm, zone, config, slow, site);
    }
    let done = asm.label();
    let mut e = Emitter::new(asm, zone, config, None, site.function);
    let mut saved = vec![Reg::R8, Reg::R9, Reg::R10, Reg::R11];
    if captures.iter().any(Capture::is_counter) {
        saved.extend(counter::SAVED);
    }
    e.begin(&site, &saved, slow, done);
    let slots = 1 + captures.len();
    e.clock();
    e.code(|c| {
        c.shl(rdx, 32)?;
        c.lea(r11, rdx + rax)?;
        c.mov(edx, (slots * STRIDE) as u32)
    });
    e.reserve();
    e.code(|c| c.mov(r9, rdx));
    e.counters(captures);
    for capture in captures.iter().filter(|c| !c.is_counter()) {
        e.register(Reg::RAX);
        e.extend(capture.scalar);
        e.value(capture, None);
    }
    e.record(site.kind, r11);
    e.end(&site, done);
}

/// One value that an instruction of the body has just loaded into a register.
pub fn body(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Slow,
    function: FunctionId,
    capture: &Capture,
    loaded: Reg,
) {
    let site = Site {
        function,
        kind: RecordKind::Value,
        live: Live::ALL,
        red_zone: true,
        position: probe::RSP,
    };
    let done = asm.label();
    let mut e = Emitter::new(asm, zone, config, None, function);
    e.begin(&site, &[Reg::R8, Reg::R9, Reg::R10], slow, done);
    e.code(|c| c.mov(edx, STRIDE as u32));
    e.reserve();
    e.code(|c| c.mov(r9, rdx));
    e.register(loaded);
    e.extend(capture.scalar);
    e.value(capture, None);
    e.end(&site, done);
}
