//! Every byte, in its order, up to the end.
use super::checks::{Tried, bytes, expect, failed, hung};
use crate::programs::{Accelerator, Count};
use crate::trial::TrialResult;
use crate::trial::pair::{Pair, Place, connect, count, fit, joined};
use std::io::{Read, Write};
use std::net::Shutdown;

fn exchange(pair: &Pair) -> Tried {
    let sent = bytes(3000);
    for (mut from, mut to) in [(&pair.client, &pair.server), (&pair.server, &pair.client)] {
        let mut read = vec![0; sent.len()];
        from.write_all(&sent).map_err(hung("writing"))?;
        to.read_exact(&mut read).map_err(hung("reading"))?;
        expect(&read, &sent)?;
    }
    Ok(TrialResult::Ok(String::new()))
}

pub(super) fn short_cut(place: &Place, with: &Accelerator) -> Tried {
    let listeners = [Some(place.listener()), place.listener_v6()];
    let mut families = 0;
    for listener in listeners.into_iter().flatten() {
        let pair = joined(listener, with)?;
        let before = count(with, Count::DirectMessages)?;
        exchange(&pair)?;
        if count(with, Count::DirectMessages)? < before + 2 {
            return Err(TrialResult::Broken("messages still take TCP".into()));
        }
        families += 1;
    }
    Ok(TrialResult::Ok(match families {
        2 => "IPv4 and IPv6".into(),
        _ => "IPv4; no IPv6 here".into(),
    }))
}

/// Of connections whose first message was redirected before `accept`.
const EARLY: u32 = 10;
/// Tried for them: where the kernel takes the handshake's last packet later than the client's first
/// write (its softirqs wait for a processor that has other work), that message goes by TCP, and shows
/// nothing of what is tried.
const EARLY_TRIES: u32 = 100;

pub(super) fn early_data(place: &Place, with: &Accelerator) -> Tried {
    let listener = place.listener();
    let sent = bytes(5000);
    let mut direct = 0;
    for tried in 1..=EARLY_TRIES {
        let before = count(with, Count::DirectMessages)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut client = connect(address).map_err(failed)?;
        client.write_all(&sent).map_err(hung("writing"))?;
        let is_direct = count(with, Count::DirectMessages)? > before;
        let (mut server, _) = listener.accept().map_err(failed)?;
        fit(&server).map_err(failed)?;
        let mut read = vec![0; sent.len()];
        server.read_exact(&mut read).map_err(hung("reading"))?;
        expect(&read, &sent)?;
        direct += u32::from(is_direct);
        if direct == EARLY {
            return Ok(TrialResult::Ok(match tried - EARLY {
                0 => format!("{EARLY} connections"),
                by_tcp => {
                    format!("{EARLY} connections; of {by_tcp} the first message took TCP")
                }
            }));
        }
    }
    Err(TrialResult::Unknown(format!(
        "of {EARLY_TRIES} first messages {direct} were redirected, the others took TCP"
    )))
}

pub(super) fn eof(place: &Place, with: &Accelerator) -> Tried {
    let sent = bytes(20_000);
    for _ in 0..20 {
        let mut pair = joined(place.listener(), with)?;
        for part in sent.chunks(1000) {
            pair.client.write_all(part).map_err(hung("writing"))?;
        }
        drop(pair.client);
        let mut read = Vec::new();
        pair.server
            .read_to_end(&mut read)
            .map_err(hung("reading"))?;
        expect(&read, &sent)?;
    }
    Ok(TrialResult::Ok("20 connections".into()))
}

pub(super) fn half_close(place: &Place, with: &Accelerator) -> Tried {
    let mut pair = joined(place.listener(), with)?;
    let sent = bytes(50_000);
    let mut read = Vec::new();
    pair.client
        .write_all(&sent[..100])
        .map_err(hung("writing"))?;
    pair.client.shutdown(Shutdown::Write).map_err(failed)?;
    pair.server
        .read_to_end(&mut read)
        .map_err(hung("reading"))?;
    expect(&read, &sent[..100])?;
    read.clear();
    pair.server.write_all(&sent).map_err(hung("answering"))?;
    pair.server.shutdown(Shutdown::Write).map_err(failed)?;
    pair.client
        .read_to_end(&mut read)
        .map_err(hung("reading the answer"))?;
    expect(&read, &sent)
}
