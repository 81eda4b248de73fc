//! Which captured values are sequence numbers of packets.
use crate::error::{Error, Result, refuse};
use hopscope_analyze::PacketId;
use hopscope_analyze::join::PacketIdCaptures;
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace, FunctionId};

/// What joins packets and runs, and how the user wrote it. `text` is `NAME` (or
/// several, `NAME,NAME`), or `first=NAME,last=NAME,count=NAME`, each with `:be` behind it for bytes in network order;
/// `None` takes the captures whose name says so. No such capture is no error then.
///
/// # Errors
/// A name that no capture has, or several of unequal width.
pub(crate) fn packet_id(
    text: Option<&str>,
    captures: &[CaptureEntry],
) -> Result<Option<(PacketId, String)>> {
    let Some(text) = text else {
        let found: Vec<_> = values(captures).filter(|c| is_packet_number(c)).collect();
        return if found.is_empty() {
            Ok(None)
        } else {
            let mut names: Vec<_> = found.iter().map(|c| c.name.clone()).collect();
            names.dedup();
            each(&found, false).map(|id| Some((id, names.join(", "))))
        };
    };
    let (name, swapped) = match text.strip_suffix(":be") {
        Some(name) => (name, true),
        None => (text, false),
    };
    let id = match name.split(',').collect::<Vec<_>>()[..] {
        [first, last, count] if first.starts_with("first=") => {
            let one = |part: &str, key: &str| -> Result<&CaptureEntry> {
                let name = part.strip_prefix(key).ok_or_else(|| {
                    Error::Refused(format!(
                        "--packet-id {text}: write first=NAME,last=NAME,count=NAME"
                    ))
                })?;
                match named(name, captures)?[..] {
                    [one] => Ok(one),
                    _ => refuse!("--packet-id: several functions capture {name}; one is needed"),
                }
            };
            let (first, last) = (one(first, "first=")?, one(last, "last=")?);
            let place = |c: &CaptureEntry| (c.function, c.capture);
            PacketId {
                bits: same_bits(&[first, last])?,
                swapped,
                captures: PacketIdCaptures::Ends {
                    first: place(first),
                    last: place(last),
                    count: place(one(count, "count=")?),
                },
            }
        }
        _ => {
            let mut found = Vec::new();
            for name in name.split(',') {
                found.extend(named(name, captures)?);
            }
            each(&found, swapped)?
        }
    };
    Ok(Some((id, text.to_owned())))
}

/// What calls captured: readings of counters and addresses of callees are none.
pub(crate) fn values(captures: &[CaptureEntry]) -> impl Iterator<Item = &CaptureEntry> {
    captures
        .iter()
        .filter(|c| !matches!(c.method, CaptureMethod::Counter | CaptureMethod::Callee))
}

/// Its name says so.
pub(crate) fn is_packet_number(capture: &CaptureEntry) -> bool {
    capture.name.to_lowercase().contains("seq")
}

/// A captured number of packets: the first that is named so and is read once a call.
pub(crate) fn batch_capture(captures: &[CaptureEntry]) -> Option<(FunctionId, u16)> {
    let last = |name: &str| {
        let at = name.rfind(['.', '>']).map_or(0, |at| at + 1);
        name[at..].to_lowercase()
    };
    let counts = |c: &&CaptureEntry| {
        c.elements_max == 1
            && c.at != CapturePlace::Return
            && matches!(
                last(&c.name).as_str(),
                "n" | "count" | "received" | "packets" | "nb_pkts" | "n_packets" | "n_vectors"
            )
    };
    values(captures)
        .find(counts)
        .map(|c| (c.function, c.capture))
}

fn each(found: &[&CaptureEntry], swapped: bool) -> Result<PacketId> {
    let places: Vec<(FunctionId, u16)> = found.iter().map(|c| (c.function, c.capture)).collect();
    Ok(PacketId {
        bits: same_bits(found)?,
        swapped,
        captures: PacketIdCaptures::Each(places),
    })
}

fn same_bits(found: &[&CaptureEntry]) -> Result<u8> {
    let bits = found.iter().map(|c| c.bits).min().unwrap_or(64);
    match found.iter().find(|c| c.bits != bits) {
        None => Ok(bits),
        Some(other) => refuse!(
            "the captured sequence numbers have {bits} and {} bits; choose those of one width: \
             --packet-id {}",
            other.bits,
            other.name
        ),
    }
}

fn named<'a>(name: &str, captures: &'a [CaptureEntry]) -> Result<Vec<&'a CaptureEntry>> {
    let found: Vec<_> = values(captures).filter(|c| c.name == name).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut there: Vec<_> = values(captures).map(|c| c.name.as_str()).collect();
    there.sort_unstable();
    there.dedup();
    if there.is_empty() {
        refuse!(
            "--packet-id {name}: the recording holds no captured value; capture it: \
             hopscope record -f 'FUNCTION({name})'"
        )
    } else {
        refuse!(
            "--packet-id: no capture {name}; there are {}",
            there.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(function: u32, capture: u16, name: &str, bits: u8) -> CaptureEntry {
        CaptureEntry {
            function: FunctionId(function),
            capture,
            name: name.into(),
            bits,
            signed: false,
            at: CapturePlace::Entry,
            method: CaptureMethod::Register,
            elements_max: 1,
        }
    }

    #[test]
    fn a_name_that_says_so_is_taken_and_others_must_be_named() {
        let captures = [
            capture(1, 0, "frame->n", 32),
            capture(1, 1, "frame->pkts[].seq", 32),
            capture(2, 0, "id", 16),
        ];
        let (id, name) = packet_id(None, &captures).expect("one").expect("says seq");
        assert_eq!((id.bits, name.as_str()), (32, "frame->pkts[].seq"));
        assert_eq!(
            id.captures,
            PacketIdCaptures::Each(vec![(FunctionId(1), 1)])
        );
        let (id, _) = packet_id(Some("id:be"), &captures)
            .expect("there")
            .expect("named");
        assert!(id.swapped && id.bits == 16);
        assert_eq!(packet_id(None, &captures[..1]).expect("no error"), None);
        let error = packet_id(Some("nonsense"), &captures).expect_err("no such");
        assert!(error.to_string().contains("frame->n"), "{error}");
        assert!(packet_id(Some("x"), &[]).is_err());
    }

    #[test]
    fn counters_are_no_numbers_of_packets() {
        let mut counter = capture(1, 1020, "@seq.n", 48);
        counter.method = CaptureMethod::Counter;
        let captures = [counter, capture(1, 0, "frame->count", 32)];
        assert_eq!(packet_id(None, &captures).expect("no error"), None);
        assert_eq!(batch_capture(&captures), Some((FunctionId(1), 0)));
        let error = packet_id(Some("@seq.n"), &captures).expect_err("no value");
        assert!(!error.to_string().contains("there are @"), "{error}");
    }

    #[test]
    fn ends_of_a_queue() {
        let captures = [
            capture(1, 0, "f.first", 32),
            capture(1, 1, "f.last", 32),
            capture(1, 2, "f.n", 16),
        ];
        let text = "first=f.first,last=f.last,count=f.n";
        let (id, _) = packet_id(Some(text), &captures)
            .expect("there")
            .expect("named");
        let place = |capture| (FunctionId(1), capture);
        let expected = PacketIdCaptures::Ends {
            first: place(0),
            last: place(1),
            count: place(2),
        };
        assert_eq!((id.captures, id.bits), (expected, 32));
        assert!(packet_id(Some("first=f.first,end=f.last,count=f.n"), &captures).is_err());
    }
}
