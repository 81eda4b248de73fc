//! Why a front end cannot begin or go on.
use crate::common::eventfd::EventfdError;
use crate::policy::BadPolicy;
use crate::ring::RingError;
use crate::vhost::Refused;
use hopscope_netio::PortError;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error("cannot connect to {path}: {source}; start a back end there first", path = path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("cannot listen on {path}: {source}", path = path.display())]
    Listen { path: PathBuf, source: io::Error },
    #[error("a ring of {0} entries: a power of two from 2 to 32768 is needed")]
    Ring(u16),
    #[error("the back end does not offer {feature}: {next_step}")]
    NotOffered {
        feature: &'static str,
        next_step: &'static str,
    },
    #[error("the back end refused {request}: it answered {code}")]
    Refused { request: String, code: u64 },
    #[error("the back end did not answer {request}: {source}")]
    NoAnswer { request: String, source: io::Error },
    #[error("the back end has gone: {left} packets that it had were not given back")]
    Gone { left: u64 },
    #[error("the back end gave queue {queue} up: {left} packets that it had were not given back")]
    GivenUp { queue: usize, left: u64 },
    #[error("the back end gives nothing back: {left} packets are with it since {seconds} s")]
    Stuck { left: u64, seconds: u64 },
    #[error("{missing} frames have not come back since {seconds} s")]
    Lost { missing: u64, seconds: u64 },
    #[error("ended before a back end connected")]
    NobodyCame,
    #[error("{0} packets a second: above 0 and at most 1e9 can be sent")]
    Rate(f64),
    #[error("frames of {len} bytes: {shortest} to {longest} can be sent")]
    Size {
        len: usize,
        shortest: usize,
        longest: usize,
    },
    #[error("the back end wrote what no queue allows into queue {queue}: {source}")]
    Queue { queue: usize, source: RingError },
    #[error("the back end's header says {chains} buffers for a packet, of a queue of {size}")]
    Merged { chains: u16, size: u16 },
    #[error("the back end says that it wrote {len} bytes into a buffer of {room}")]
    Written { len: u32, room: u32 },
    #[error(transparent)]
    Answer(#[from] Refused),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Policy(#[from] BadPolicy),
    #[error("{doing}: {source}")]
    System {
        doing: &'static str,
        source: io::Error,
    },
}

/// Eventfds are our own here: what fails is the kernel.
impl From<EventfdError> for DriveError {
    fn from(error: EventfdError) -> DriveError {
        DriveError::system("using an eventfd")(io::Error::other(error.to_string()))
    }
}

impl DriveError {
    pub(super) fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> DriveError {
        move |source| DriveError::System {
            doing,
            source: source.into(),
        }
    }

    pub(super) fn queue(queue: usize) -> impl FnOnce(RingError) -> DriveError {
        move |source| DriveError::Queue { queue, source }
    }
}
