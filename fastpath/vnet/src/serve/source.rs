//! Sources of events of the back end's loop. Kicks and ports are numbered.
pub(super) const STOP: u8 = 0;
pub(super) const LISTENER: u8 = 1;
pub(super) const FRONT_END: u8 = 2;
pub(super) const TIMER: u8 = 3;
pub(super) const CONTROL: u8 = 4;
pub(super) const KICK: u8 = 5;
pub(super) const PORT: u8 = 6;
