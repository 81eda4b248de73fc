//! Why a front end cannot start or continue.
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
    #[error("the back end disconnected: {left} packets that it held were not returned")]
    Gone { left: u64 },
    #[error(
        "the back end reported an error on queue {queue}: {left} packets that it held were not returned"
    )]
    GivenUp { queue: usize, left: u64 },
    #[error("the back end has returned no buffer for {seconds} s: {left} packets are outstanding")]
    Stuck { left: u64, seconds: u64 },
    #[error("{missing} frames were not echoed within {seconds} s")]
    Lost { missing: u64, seconds: u64 },
    #[error("stopped before a back end connected")]
    NobodyCame,
    #[error("{0} packets a second: above 0 and at most 1e9 can be sent")]
    Rate(f64),
    #[error("frames of {len} bytes: {shortest} to {longest} can be sent")]
    Size {
        len: usize,
        shortest: usize,
        longest: usize,
    },
    #[error("the back end wrote an invalid ring in queue {queue}: {source}")]
    Queue { queue: usize, source: RingError },
    #[error("num_buffers of a received packet is {chains}, in a queue of {size}")]
    Merged { chains: u16, size: u16 },
    #[error("the used length is {len} bytes, in a buffer of {room}")]
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
