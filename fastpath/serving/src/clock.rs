//! Time since an end began: policies take it as an argument.
use hopscope_event::Ns;
use std::time::Instant;

#[derive(Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    #[must_use]
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    #[must_use]
    pub fn now(self) -> Ns {
        Ns(self.0.elapsed().as_nanos() as u64)
    }
}
