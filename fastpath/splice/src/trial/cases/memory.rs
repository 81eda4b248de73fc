//! What a reader that stops costs.
use super::checks::{Tried, failed, hung};
use crate::programs::Accelerator;
use crate::trial::TrialResult;
use crate::trial::pair::{Pair, Place, joined};
use std::io::{self, ErrorKind, Read, Write};
use std::thread;

/// Bytes that are taken from a writer whose reader does not read.
fn fill(pair: &mut Pair) -> Result<usize, TrialResult> {
    /// Beyond any limit of ours.
    const ENOUGH: usize = 256 << 20;
    let part = vec![0x5a; 64 << 10];
    let mut taken = 0;
    pair.client.set_nonblocking(true).map_err(failed)?;
    while taken < ENOUGH {
        match pair.client.write(&part) {
            Ok(length) => taken += length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(taken)
}

pub(super) fn memory(place: &Place, with: &Accelerator) -> Tried {
    let mut plain = place.plain().map_err(failed)?;
    let mut fast = joined(place.listener(), with)?;
    let (plain_bytes, fast_bytes) = (fill(&mut plain)?, fill(&mut fast)?);
    drop(plain);
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let found = format!(
        "{:.1} MiB unread, plain TCP {:.1} MiB",
        mib(fast_bytes),
        mib(plain_bytes)
    );
    if fast_bytes > 2 * plain_bytes {
        return Err(TrialResult::Broken(found));
    }
    let reader = thread::spawn(move || -> io::Result<usize> {
        let mut part = vec![0; 64 << 10];
        let mut read = 0;
        while read < fast_bytes {
            read += match fast.server.read(&mut part)? {
                0 => break,
                length => length,
            };
        }
        Ok(read)
    });
    match reader.join() {
        Ok(Ok(read)) if read == fast_bytes => Ok(TrialResult::Ok(found)),
        Ok(Ok(read)) => Err(TrialResult::Broken(format!(
            "{read} of {fast_bytes} bytes came"
        ))),
        Ok(Err(error)) => Err(hung("reading what was queued")(error)),
        Err(_) => Err(TrialResult::Unknown("the reader failed".into())),
    }
}
