//! Calls that ask of what lies unread, or leave it.
use super::checks::{Tried, bytes, expect, failed, hung, wait_readable};
use crate::socket_options::bytes_to_read;
use crate::trial::TrialResult;
use crate::trial::pair::Pair;
use nix::fcntl::{SpliceFFlags, splice};
use std::io::{self, ErrorKind, Read, Write};

pub(super) fn fionread(mut pair: Pair) -> Tried {
    let sent = bytes(1234);
    pair.client.write_all(&sent).map_err(hung("writing"))?;
    wait_readable(&pair)?;
    let said = bytes_to_read(&pair.server).map_err(failed)?;
    let mut read = vec![0; sent.len()];
    pair.server.read_exact(&mut read).map_err(hung("reading"))?;
    expect(&read, &sent)?;
    if said == sent.len() {
        Ok(TrialResult::Ok(format!("says {said}")))
    } else {
        Ok(TrialResult::Broken(format!(
            "says {said} of {}",
            sent.len()
        )))
    }
}

pub(super) fn peek(mut pair: Pair) -> Tried {
    let sent = bytes(800);
    pair.client.write_all(&sent).map_err(hung("writing"))?;
    wait_readable(&pair)?;
    let mut seen = vec![0; sent.len()];
    for _ in 0..2 {
        let length = pair.server.peek(&mut seen).map_err(hung("looking ahead"))?;
        expect(&seen[..length], &sent)?;
    }
    let mut read = vec![0; sent.len()];
    pair.server.read_exact(&mut read).map_err(hung("reading"))?;
    expect(&read, &sent)
}

pub(super) fn splice_2(mut pair: Pair) -> Tried {
    let sent = bytes(700);
    pair.client.write_all(&sent).map_err(hung("writing"))?;
    wait_readable(&pair)?;
    let (to, from) = io::pipe()
        .map(|(reader, writer)| (writer, reader))
        .map_err(failed)?;
    let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
    let moved = splice(&pair.server, None, &to, None, sent.len(), flags);
    drop(to);
    match moved {
        Ok(length) => {
            let mut read = Vec::new();
            (&from)
                .take(length as u64)
                .read_to_end(&mut read)
                .map_err(failed)?;
            expect(&read, &sent)
        }
        Err(errno) => Ok(TrialResult::Broken(errno.to_string())),
    }
}

/// RFC 9293 section 3.6.1: whoever closes with unread data resets the connection.
pub(super) fn unread_reset(mut pair: Pair) -> Tried {
    pair.client
        .write_all(&bytes(100))
        .map_err(hung("writing"))?;
    wait_readable(&pair)?;
    drop(pair.server);
    match pair.client.read(&mut [0; 8]) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {
            Ok(TrialResult::Ok("a reset is told".into()))
        }
        Err(error) => Ok(TrialResult::Broken(error.to_string())),
        Ok(_) => Ok(TrialResult::Broken("an orderly end".into())),
    }
}
