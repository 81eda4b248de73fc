//! The sending half over a path of its own: what is lost, late or twice is each test's argument.
mod goodput;
mod hostile;
mod path;
mod receiver;
mod scenarios;
mod undo;
