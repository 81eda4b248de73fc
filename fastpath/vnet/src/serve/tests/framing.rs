//! Messages cut anywhere, and bytes that are none, with descriptors at any of them.
use super::descriptors::{Bell, borrowed};
use super::*;
use crate::serve::wire::{Read, Wire};
use crate::vhost::Request;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::cell::Cell;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

pub(super) fn send(socket: &UnixStream, bytes: &[u8], descriptors: &[RawFd]) -> nix::Result<usize> {
    let rights = [ControlMessage::ScmRights(descriptors)];
    let rights = if descriptors.is_empty() {
        &[][..]
    } else {
        &rights
    };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let part = [IoSlice::new(bytes)];
    sendmsg::<()>(socket.as_raw_fd(), &part, rights, flags, None)
}

pub(super) fn message(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let head = [request, flags, payload.len() as u32].map(u32::to_ne_bytes);
    [&head.concat(), payload].concat()
}

/// A doorbell, with a descriptor; a word, without one; or a question.
fn fair(kind: u8, word: u64) -> (Vec<u8>, usize, Request) {
    let queue = (word % 4) as u32;
    match kind % 3 {
        0 => (
            message(13, 1, &u64::from(queue).to_ne_bytes()),
            1,
            Request::SetVringCall {
                queue,
                descriptor: true,
            },
        ),
        1 => (
            message(2, 1, &word.to_ne_bytes()),
            0,
            Request::SetFeatures(word),
        ),
        _ => (message(1, 1, &[]), 0, Request::GetFeatures),
    }
}

/// The same messages with the same descriptors, wherever the bytes were cut and the reader looked.
#[test]
fn messages_are_whole_wherever_they_are_cut() {
    let seen = Cell::new(0);
    let cuts = prop::collection::vec((1..30usize, any::<bool>()), 1..40);
    let messages = prop::collection::vec((any::<u8>(), any::<u64>()), 1..12);
    let done = runner(64).run(&(messages, cuts), |(messages, cuts)| {
        let (near, far) = UnixStream::pair().expect("sockets");
        let bell = Bell::new();
        let mut wire = Wire::new(near);
        let mut cuts = cuts.iter().cycle();
        let mut came = Vec::new();
        let mut look = |wire: &mut Wire| {
            while let Ok(Read::Message(_, request, with)) = wire.read() {
                came.push((request, with.len()));
            }
        };
        let mut expected = Vec::new();
        for (kind, word) in messages {
            let (bytes, descriptors, request) = fair(kind, word);
            expected.push((request, descriptors));
            let mut rest = &bytes[..];
            // Descriptors come with a message's first byte.
            let mut with = vec![borrowed(&bell).as_raw_fd(); descriptors];
            while let Some((len, looks)) = cuts.next().filter(|_| !rest.is_empty()) {
                let (part, behind) = rest.split_at(rest.len().min(*len));
                send(&far, part, &std::mem::take(&mut with)).expect("room");
                rest = behind;
                if *looks {
                    look(&mut wire);
                }
            }
        }
        look(&mut wire);
        seen.set(seen.get() + came.len());
        prop_assert_eq!(came, expected);
        drop(wire);
        prop_assert_eq!(bell.open(), 1);
        Ok(())
    });
    done.unwrap_or_else(|why| panic!("{why}"));
    assert!(seen.get() > 100, "{} messages", seen.get());
}

/// Any bytes: messages or a refusal, never more memory than a message has, no descriptor kept.
#[test]
fn any_bytes_are_messages_or_refused() {
    let (whole, refused) = (Cell::new(0), Cell::new(0));
    let byte = prop_oneof![4 => Just(0u8), 2 => Just(1u8), 2 => 0..48u8, 1 => any::<u8>()];
    let bytes = prop_oneof![
        prop::collection::vec(byte, 1..80),
        (
            0..48u32,
            prop_oneof![9 => Just(1u32), 1 => any::<u32>()],
            prop::collection::vec(any::<u8>(), 0..300)
        )
            .prop_map(|(request, flags, payload)| message(request, flags, &payload)),
    ];
    let wrong = (bytes, prop_oneof![3 => Just(0usize), 1 => 0..9usize]);
    let right = (any::<u8>(), any::<u64>()).prop_map(|(kind, word)| {
        let (bytes, descriptors, _) = fair(kind, word);
        (bytes, descriptors)
    });
    let parts = prop::collection::vec(prop_oneof![6 => right, 1 => wrong], 1..20);
    let done = runner(128).run(&(parts, any::<bool>()), |(parts, ends)| {
        let (near, far) = UnixStream::pair().expect("sockets");
        let bell = Bell::new();
        let mut wire = Wire::new(near);
        for (bytes, descriptors) in &parts {
            // The reader may have gone.
            let _ = send(
                &far,
                bytes,
                &vec![borrowed(&bell).as_raw_fd(); *descriptors],
            );
        }
        if ends {
            let _ = far.shutdown(std::net::Shutdown::Write);
        }
        loop {
            match wire.read() {
                Ok(Read::Message(header, ..)) => {
                    prop_assert!(header.payload_len <= 264);
                    whole.set(whole.get() + 1);
                }
                Ok(Read::Later) => {
                    prop_assert!(!ends);
                    break;
                }
                Ok(Read::Ended) => break,
                Err(_) => {
                    refused.set(refused.get() + 1);
                    break;
                }
            }
        }
        drop((wire, far));
        prop_assert_eq!(bell.open(), 1);
        Ok(())
    });
    done.unwrap_or_else(|why| panic!("{why}"));
    let (whole, refused) = (whole.get(), refused.get());
    assert!(
        whole > 20 && refused > 20,
        "{whole} messages, {refused} refused"
    );
}
