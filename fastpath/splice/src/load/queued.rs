//! What was handed over and not read yet: looked up socket by socket, by a program of the kernel's
//! iterator over the map.
use super::{LoadError, object};
use crate::object::aligned;
use libbpf_rs::{Iter, Link, Object};
use std::io::Read;
use std::os::fd::BorrowedFd;

static OBJECT: &[u8] = aligned!("queued");
/// `struct queued` of `bpf/queued.bpf.c`
const LINE: usize = 16;

/// A socket with unread bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub cookie: u64,
    /// 0 where the kernel keeps no sum.
    pub bytes: u64,
}

pub struct Queues {
    link: Link,
    _object: Object,
}

impl Queues {
    pub(super) fn of(map: BorrowedFd<'_>) -> Result<Queues, LoadError> {
        let what = "looking at queues";
        let object = object::load(OBJECT, "splice_queued", |_| Ok(()))?;
        let program = object.progs_mut().find(|p| p.name() == "queued");
        let program = program.ok_or(LoadError::missing(what, "program"))?;
        let link = program.attach_iter(map).map_err(LoadError::bpf(what))?;
        Ok(Queues {
            link,
            _object: object,
        })
    }

    /// # Errors
    /// The kernel does not say.
    pub fn waiting(&self) -> Result<Vec<Waiting>, LoadError> {
        let what = "reading queues";
        let mut bytes = Vec::new();
        let mut iter = Iter::new(&self.link).map_err(LoadError::bpf(what))?;
        iter.read_to_end(&mut bytes)
            .map_err(|error| LoadError::Bpf {
                what,
                why: error.to_string(),
            })?;
        let word = |line: &[u8], at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&line[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        let lines = bytes.chunks_exact(LINE);
        Ok(lines
            .map(|line| Waiting {
                cookie: word(line, 0),
                bytes: word(line, 8),
            })
            .collect())
    }
}
