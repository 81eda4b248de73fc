//! What a try of a call came to.
use hopscope_stack_engine::Ns;

/// What became of a try.
#[derive(Debug)]
pub enum Step {
    Done(i64),
    /// errno
    Fail(i32),
    /// The kernel's socket is to answer.
    Pass,
    /// Not now.
    Block {
        /// The call does not wait.
        now: bool,
        /// How long it waits at most.
        span: Option<Ns>,
        /// Bytes that were moved already: its result where it ends here.
        partial: i64,
        /// errno where it ends here with nothing.
        otherwise: i32,
        /// A descriptor of the kernel whose readiness ends the wait, too.
        kernel: Option<i32>,
    },
}

impl Step {
    pub fn of(result: Result<(), i32>) -> Step {
        match result {
            Ok(()) => Step::Done(0),
            Err(errno) => Step::Fail(errno),
        }
    }
}
