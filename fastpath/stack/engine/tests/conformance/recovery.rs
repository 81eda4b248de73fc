//! Loss recovery, one scenario a test.
mod fast;
mod robust;
mod tail;
mod timeout;
