//! Recorded handshakes replayed; what may not be said; whatever bytes.
use super::*;
use crate::ring::Layout;
use proptest::prelude::*;
use vm_memory::GuestAddress;

const QEMU: &str = include_str!("tests/qemu.txt");
/// What the recorder offered: CSUM, MRG_RXBUF, INDIRECT_DESC, EVENT_IDX, VERSION_1.
const OFFERED: u64 = 1 | 1 << 15 | 1 << 28 | 1 << 29 | 1 << 32;
const PROTOCOL: u64 = PROTOCOL_MQ | PROTOCOL_REPLY_ACK | PROTOCOL_STATUS;

fn control() -> Control {
    Control::new(OFFERED, PROTOCOL, 2)
}

fn header(request: u32, flags: u32, len: usize) -> [u8; HEADER_LEN] {
    let words = [request, flags, len as u32];
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    bytes.try_into().expect("twelve")
}

fn say(
    control: &mut Control,
    request: u32,
    flags: u32,
    payload: &[u8],
    descriptors: usize,
) -> Result<Answer, Refused> {
    let header = Header::decode(&header(request, flags, payload.len()))?;
    control.on(header, Request::decode(header, payload, descriptors)?)
}

struct Line {
    from_front_end: bool,
    request: u32,
    flags: u32,
    payload: Vec<u8>,
    descriptors: usize,
}

fn transcript(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let hex = words[3].trim_matches('-');
        let byte = |n| u8::from_str_radix(&hex[n..n + 2], 16).expect("hexadecimal");
        Line {
            from_front_end: words[0] == ">",
            request: words[1].parse().expect("a number"),
            flags: u32::from_str_radix(&words[2][2..], 16).expect("hexadecimal"),
            payload: (0..hex.len()).step_by(2).map(byte).collect(),
            descriptors: words[4].parse().expect("a number"),
        }
    };
    lines.map(line).collect()
}

/// Each answer is the recorded one, to the byte, and there is none where none was given.
#[test]
fn qemus_handshake_is_answered() {
    let mut control = control();
    let lines = transcript(QEMU);
    let mut enabled_early = false;
    for (n, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.from_front_end)
    {
        let (flags, count) = (line.flags, line.descriptors);
        let answer = say(&mut control, line.request, flags, &line.payload, count);
        let answer = answer.unwrap_or_else(|refused| panic!("line {n}: {refused}"));
        let recorded = lines
            .get(n + 1)
            .filter(|next| !next.from_front_end)
            .map(|next| {
                let head = header(next.request, next.flags, next.payload.len());
                [&head[..], &next.payload].concat()
            });
        // The recorder knew no status: 0 there, what was set here.
        match line.request {
            40 => assert!(answer.reply.is_some() && recorded.is_some()),
            _ => assert_eq!(answer.reply, recorded, "line {n}"),
        }
        enabled_early |= line.request == 18 && control.features().is_none();
        if line.request == 2 {
            assert_eq!(control.live(0), Ok(None), "features alone");
        }
    }
    assert!(enabled_early, "the recording has lost what it is there for");
    let layout = |descriptors, driver, device| Layout {
        size: 256,
        descriptors: GuestAddress(descriptors),
        driver: GuestAddress(driver),
        device: GuestAddress(device),
    };
    let first = layout(0x3f5_f000, 0x3f6_0000, 0x3f6_1000);
    let second = layout(0x3f6_2000, 0x3f6_3000, 0x3f6_4000);
    assert_eq!(control.live(0), Ok(Some(first)));
    assert_eq!(control.live(1), Ok(Some(second)));
    assert_eq!(control.protocol_features(), PROTOCOL);
}

/// As far as the driver's start, in its recorded words.
fn started() -> Control {
    let mut control = control();
    for line in transcript(QEMU).iter().filter(|line| line.from_front_end) {
        let said = say(
            &mut control,
            line.request,
            line.flags,
            &line.payload,
            line.descriptors,
        );
        said.expect("as recorded");
    }
    control
}

fn state(queue: u32, value: u32) -> Vec<u8> {
    [queue.to_ne_bytes(), value.to_ne_bytes()].concat()
}

#[test]
fn a_queue_is_live_while_it_is_started_and_enabled() {
    let mut control = started();
    let live = |control: &Control| control.live(0).expect("mapped").is_some();
    assert!(live(&control));
    let off = say(&mut control, 18, 1, &state(0, 0), 0).expect("fair");
    assert_eq!((off.change, off.reply), (Change::Queue(0), None));
    assert!(!live(&control));
    say(&mut control, 18, 1, &state(0, 1), 0).expect("fair");
    assert!(live(&control));
    // Stopping gives the base that the queue ended at.
    control.base(0, 77);
    let stopped = say(&mut control, 11, 1, &state(0, 0), 0).expect("fair");
    assert_eq!(stopped.change, Change::Stopped(0));
    let reply = stopped.reply.expect("a base");
    assert_eq!(reply[HEADER_LEN..], state(0, 77)[..]);
    assert!(!live(&control));
    // A kick starts it again.
    let kick = say(&mut control, 12, 1, &0u64.to_ne_bytes(), 1).expect("fair");
    let change = Change::Doorbell {
        queue: 0,
        which: Doorbell::Kick,
        descriptor: true,
    };
    assert_eq!(kick.change, change);
    assert!(live(&control));
    let reset = say(&mut control, 39, 1, &0u64.to_ne_bytes(), 0).expect("fair");
    assert_eq!(reset.change, Change::Reset);
    assert!(!live(&control) && control.features().is_none());
}

#[test]
fn an_answer_is_given_where_it_is_asked_for_and_negotiated() {
    let mut control = control();
    let with_reply = 1 | 8;
    let silent = say(&mut control, 3, with_reply, &[], 0).expect("fair");
    assert_eq!(silent.reply, None, "not negotiated");
    say(&mut control, 16, 1, &PROTOCOL.to_ne_bytes(), 0).expect("fair");
    let asked = say(&mut control, 3, with_reply, &[], 0).expect("fair");
    let done = [&header(3, 5, 8)[..], &[0; 8]].concat();
    assert_eq!(asked.reply, Some(done));
    assert_eq!(say(&mut control, 3, 1, &[], 0).expect("fair").reply, None);
}

#[test]
fn refusals_are_one_line_each() {
    let region = |guest: u64, len: u64| {
        let words = [guest, len, 0x7000_0000, 0];
        words.map(u64::to_ne_bytes).concat()
    };
    let table = |regions: &[Vec<u8>]| {
        let mut bytes = (regions.len() as u64).to_ne_bytes().to_vec();
        bytes.extend(regions.concat());
        bytes
    };
    let log_address = {
        let mut bytes = vec![0; 40];
        bytes[4] = 1;
        bytes
    };
    let overlapping = table(&[region(0, 0x2000), region(0x1000, 0x1000)]);
    for (said, request, flags, payload, descriptors) in [
        ("version 2", 1, 2, vec![], 0),
        ("GET_FEATURES: 3 bytes", 1, 1, vec![0; 3], 0),
        ("came with 1 descriptors in place of 0", 1, 1, vec![], 1),
        ("request 99 is not known", 99, 1, vec![], 0),
        ("live migration (SET_LOG_BASE)", 6, 1, vec![0; 16], 1),
        (
            "live migration (SET_VRING_ADDR with a log)",
            9,
            1,
            log_address,
            0,
        ),
        ("queue 2: there are 2", 8, 1, state(2, 64), 0),
        ("queue 0: a size of 0", 8, 1, state(0, 0), 0),
        ("queue 0: a size of 65536", 8, 1, state(0, 65_536), 0),
        ("queue 1: a base of 65536", 10, 1, state(1, 65_536), 0),
        ("queue 1 would have to be polled", 12, 1, state(0x101, 0), 0),
        (
            "SET_VRING_KICK came with 0 descriptors",
            12,
            1,
            state(1, 0),
            0,
        ),
        (
            "features 0x2 were acknowledged but not offered",
            2,
            1,
            state(2, 0),
            0,
        ),
        (
            "features 0x4 were acknowledged but not offered",
            16,
            1,
            state(4, 0),
            0,
        ),
        (
            "live migration (PROTOCOL_F_LOG_SHMFD)",
            16,
            1,
            state(2, 0),
            0,
        ),
        (
            "live migration (VHOST_F_LOG_ALL)",
            2,
            1,
            state(1 << 26, 0),
            0,
        ),
        ("0 memory regions", 5, 1, table(&[]), 0),
        (
            "9 memory regions",
            5,
            1,
            [9u64.to_ne_bytes().to_vec(), vec![0; 200]].concat(),
            9,
        ),
        (
            "SET_MEM_TABLE: 8 bytes",
            5,
            1,
            1u64.to_ne_bytes().to_vec(),
            1,
        ),
        (
            "SET_MEM_TABLE came with 0",
            5,
            1,
            table(&[region(0, 4096)]),
            0,
        ),
        (
            "0x0 bytes at 0x1000 wraps",
            5,
            1,
            table(&[region(0x1000, 0)]),
            1,
        ),
        ("wraps, is empty", 5, 1, table(&[region(u64::MAX, 2)]), 1),
        ("0x1000 bytes at 0x1000 wraps", 5, 1, overlapping, 2),
    ] {
        let refused = say(&mut control(), request, flags, &payload, descriptors);
        let line = refused.expect_err(said).to_string();
        assert!(line.contains(said), "{said}: {line}");
    }
    let long = Header::decode(&header(1, 1, 265))
        .expect_err("refused")
        .to_string();
    assert_eq!(
        long,
        "a message of 265 bytes: no known one is longer than 264"
    );
}

#[test]
fn a_queue_outside_the_memory_is_refused() {
    let mut control = started();
    let moved = [&[0u8; 8][..], &[0x40; 32]].concat();
    let answer = say(&mut control, 9, 1, &moved, 0).expect("only an address");
    assert_eq!(answer.change, Change::Queue(0));
    let refused = control.live(0).expect_err("in no region").to_string();
    assert!(
        refused.starts_with("queue 0: 0x4040404040404040"),
        "{refused}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Known requests with any payload, at any state: an answer or a refusal, and queues within memory.
    #[test]
    fn any_message_is_answered_or_refused(
        messages in prop::collection::vec((
            0..42u32, prop_oneof![Just(1u32), Just(9), any::<u32>()],
            prop_oneof![
                Just(vec![]), prop::collection::vec(0..3u8, 8), prop::collection::vec(any::<u8>(), 8),
                prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 40), prop::collection::vec(any::<u8>(), 0..264),
            ], 0..3usize), 1..60),
        from_start in any::<bool>(),
    ) {
        let mut control = if from_start { control() } else { started() };
        for (request, flags, payload, descriptors) in messages {
            let _ = say(&mut control, request, flags, &payload, descriptors);
            for queue in 0..2 {
                let Ok(Some(layout)) = control.live(queue) else { continue };
                prop_assert!(layout.size > 0);
                let inside = |address: GuestAddress| control.regions().iter().any(|region| {
                    (region.guest..=region.guest + (region.len - 1)).contains(&address.0)
                });
                prop_assert!([layout.descriptors, layout.driver, layout.device].into_iter().all(inside));
            }
        }
    }
}

fn any_request() -> impl Strategy<Value = Request> {
    let queue = any::<u8>().prop_map(u32::from);
    let state = (any::<u32>(), any::<u32>());
    let region = any::<[u64; 4]>().prop_map(|[guest, len, user, offset]| Region {
        guest,
        len,
        user,
        offset,
    });
    prop_oneof![
        prop::sample::select(vec![
            Request::GetFeatures,
            Request::SetOwner,
            Request::ResetOwner,
            Request::GetProtocolFeatures,
            Request::GetQueueNum,
            Request::GetStatus,
        ]),
        any::<u64>().prop_map(Request::SetFeatures),
        any::<u64>().prop_map(Request::SetProtocolFeatures),
        any::<u64>().prop_map(Request::SetStatus),
        prop::collection::vec(region, 1..9).prop_map(Request::SetMemTable),
        state.prop_map(|(queue, size)| Request::SetVringNum { queue, size }),
        state.prop_map(|(queue, base)| Request::SetVringBase { queue, base }),
        any::<u32>().prop_map(|queue| Request::GetVringBase { queue }),
        (any::<u32>(), any::<bool>()).prop_map(|(queue, on)| Request::SetVringEnable { queue, on }),
        (any::<u32>(), any::<[u64; 3]>()).prop_map(|(queue, [descriptors, used, available])| {
            Request::SetVringAddr(QueueAddress {
                queue,
                descriptors,
                used,
                available,
            })
        }),
        (queue, any::<bool>(), 0..3).prop_map(|(queue, descriptor, which)| match which {
            0 => Request::SetVringKick { queue, descriptor },
            1 => Request::SetVringCall { queue, descriptor },
            _ => Request::SetVringErr { queue, descriptor },
        }),
    ]
}

fn descriptors_of(request: &Request) -> usize {
    match request {
        Request::SetMemTable(regions) => regions.len(),
        Request::SetVringKick { descriptor, .. }
        | Request::SetVringCall { descriptor, .. }
        | Request::SetVringErr { descriptor, .. } => usize::from(*descriptor),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn what_a_front_end_says_is_what_a_back_end_hears(request in any_request(), reply: bool) {
        let bytes = request.encode(reply);
        let (head, payload) = bytes.split_at(HEADER_LEN);
        let header = Header::decode(head.try_into().expect("twelve")).expect("known");
        prop_assert_eq!(header.payload_len as usize, payload.len());
        prop_assert_eq!(header.need_reply, reply);
        let heard = Request::decode(header, payload, descriptors_of(&request));
        prop_assert_eq!(heard, Ok(request));
    }
}

#[test]
fn an_answer_is_to_what_was_asked() {
    let answer = |number: u32, flags: u32, len: usize| header(number, flags, len);
    let asked = Request::GetFeatures;
    assert_eq!(asked.answer_len(&answer(1, 5, 8)), Ok(8));
    assert_eq!(asked.answer_len(&answer(1, 6, 8)), Err(Refused::Version(2)));
    for (number, flags, len) in [(2, 5, 8), (1, 1, 8), (1, 5, 4)] {
        let refused = asked.answer_len(&answer(number, flags, len));
        assert!(
            matches!(refused, Err(Refused::OtherAnswer { .. })),
            "{refused:?}"
        );
    }
}
