//! How long a wait may last, and what it returns.
use super::memory::{fail, get};
use crate::stack::now;
use hopscope_stack_engine::Ns;
use nix::libc::{self, c_int, timespec};

/// When a wait ends at the latest.
#[derive(Clone, Copy)]
pub enum Limit {
    Now,
    At(Ns),
    Never,
}

impl Limit {
    pub fn ms(timeout: c_int) -> Limit {
        match timeout {
            0 => Limit::Now,
            1.. => Limit::At(now() + Ns::from_ms(timeout as u64)),
            _ => Limit::Never,
        }
    }

    /// # Safety
    /// `span` is null or points to a time.
    pub unsafe fn span(span: *const timespec) -> Result<Limit, i32> {
        if span.is_null() {
            return Ok(Limit::Never);
        }
        // SAFETY: the caller's promise.
        let span = unsafe { get(span) };
        if span.tv_sec < 0 || !(0..1_000_000_000).contains(&span.tv_nsec) {
            return Err(libc::EINVAL);
        }
        let span = (span.tv_sec as u64).saturating_mul(1_000_000_000) + span.tv_nsec as u64;
        Ok(match span {
            0 => Limit::Now,
            _ => Limit::At(Ns(now().0.saturating_add(span))),
        })
    }

    pub fn at(self) -> Option<Ns> {
        match self {
            Limit::At(at) => Some(at),
            Limit::Now | Limit::Never => None,
        }
    }

    pub fn is_over(self) -> bool {
        match self {
            Limit::Now => true,
            Limit::At(at) => at <= now(),
            Limit::Never => false,
        }
    }
}

pub fn end(result: Result<i32, i32>) -> c_int {
    result.unwrap_or_else(|errno| fail(errno) as c_int)
}
