//! What a user may want to know while it happens.
use super::error::Broken;
use super::live::QueueError;
use crate::common::Negotiated;
use std::io;
use std::path::Path;

#[derive(Debug)]
pub enum Notice<'a> {
    Connected,
    TurnedAway,
    Queue {
        n: usize,
        size: u16,
        taken: Negotiated,
    },
    /// It goes on where its ring says, not where the front end does; so many entries went back with nothing in them.
    Found {
        n: usize,
        emptied: u16,
    },
    Broken {
        n: usize,
        error: &'a QueueError,
    },
    BrokenOff(&'a Broken),
    Gone,
    /// The socket's file could not be removed at the end.
    Left {
        path: &'a Path,
        error: &'a io::Error,
    },
}
