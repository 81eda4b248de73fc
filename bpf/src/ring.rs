//! Reading a ring buffer (BPF_MAP_TYPE_RINGBUF) of the programs.
use crate::BpfError;
use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};
use std::time::Duration;

pub struct Ring {
    ring: RingBuffer<'static>,
    what: &'static str,
}

impl Ring {
    /// `on_entry` is called with each entry that a later [`Ring::consume`] reads. `what` names the ring in errors.
    ///
    /// # Errors
    /// The map is of another type, or cannot be mapped.
    pub fn open(
        map: &dyn MapCore,
        what: &'static str,
        mut on_entry: impl FnMut(&[u8]) + 'static,
    ) -> Result<Ring, BpfError> {
        let mut builder = RingBufferBuilder::new();
        let on_entry = move |bytes: &[u8]| {
            on_entry(bytes);
            0
        };
        builder
            .add(map, on_entry)
            .map_err(BpfError::with_cause(what))?;
        let ring = builder.build().map_err(BpfError::with_cause(what))?;
        Ok(Ring { ring, what })
    }

    /// Reads up to `most` entries; never waits. It reads shared memory only.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn consume(&self, most: usize) -> Result<usize, BpfError> {
        let read = self.ring.consume_raw_n(most);
        usize::try_from(read).map_err(|_| BpfError::Call {
            what: self.what,
            why: std::io::Error::from_raw_os_error(-read).to_string(),
        })
    }

    /// Sleeps until there are entries or the span is over, or for less, and reads what there is.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn wait(&self, span: Duration) -> Result<usize, BpfError> {
        let read = self.ring.poll_raw(span);
        if read < 0 && read != -rustix::io::Errno::INTR.raw_os_error() {
            return Err(BpfError::Call {
                what: self.what,
                why: std::io::Error::from_raw_os_error(-read).to_string(),
            });
        }
        self.consume(usize::MAX)
    }
}
