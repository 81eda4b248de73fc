//! What the proxy's thread and its owner share.
use super::ProxyError;
use super::auto::EngineVerdict;
use super::counts::Counters;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

/// Choices that are kept for the report.
const KEPT: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Serve,
    /// No new connections.
    Drain,
    End,
}

/// What the thread and its owner have in common.
pub(super) struct Shared {
    pub(super) counters: Counters,
    pub(super) wake: EventFd,
    phase: AtomicU8,
    choices: Mutex<Choices>,
}

#[derive(Debug, Default)]
pub(super) struct Choices {
    pub(super) made: u64,
    pub(super) last: VecDeque<EngineVerdict>,
    unsaid: Vec<EngineVerdict>,
}

impl Shared {
    pub(super) fn new() -> Result<Shared, ProxyError> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = EventFd::from_value_and_flags(0, flags);
        Ok(Shared {
            counters: Counters::default(),
            wake: wake.map_err(ProxyError::system("making an eventfd"))?,
            phase: AtomicU8::new(Phase::Serve as u8),
            choices: Mutex::default(),
        })
    }

    pub(super) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Serve,
            1 => Phase::Drain,
            _ => Phase::End,
        }
    }

    pub(super) fn chose(&self, choice: EngineVerdict) {
        let mut choices = self.choices();
        choices.made += 1;
        if choices.last.len() == KEPT {
            choices.last.pop_front();
        }
        choices.last.push_back(choice.clone());
        choices.unsaid.push(choice);
    }

    pub(super) fn choices(&self) -> std::sync::MutexGuard<'_, Choices> {
        self.choices.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Since the last call.
    pub(super) fn take_choices(&self) -> Vec<EngineVerdict> {
        std::mem::take(&mut self.choices().unsaid)
    }

    pub(super) fn enter(&self, phase: Phase) -> Result<(), ProxyError> {
        self.phase.store(phase as u8, Ordering::Release);
        let woken = self.wake.write(1);
        woken
            .map(drop)
            .map_err(ProxyError::system("stopping the proxy"))
    }
}
