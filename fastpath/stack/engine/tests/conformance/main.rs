//! Conformance tests of the engine: against RFCs, in virtual time. Packets are written and read by the tests' own codec.
#![forbid(unsafe_code)]

mod behaviour;
mod hostile;
mod interop;
mod recovery;
mod rfc9293;
mod scale;
mod simulator;
mod support;
