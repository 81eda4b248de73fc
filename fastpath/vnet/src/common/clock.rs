//! Time since an end began: policies take it as an argument.
use crate::Ns;
use std::time::Instant;

#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Ns {
        Ns(self.0.elapsed().as_nanos() as u64)
    }
}
