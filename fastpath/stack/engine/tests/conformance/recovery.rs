//! Loss recovery, one scenario a test.
mod fast;
mod prr;
mod robust;
mod tail;
mod timeout;
