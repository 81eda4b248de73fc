//! Frames that are no packets, and packets changed a little. Nothing panics, and a connection beside them goes on.
use crate::support::host::config;
use crate::support::notation::parse;
use crate::support::script::Script;
use proptest::prelude::*;

/// Frames that once were worth a look, one in hex on each line, with what it is before it.
const CORPUS: &str = include_str!("corpus.txt");

fn goes_on(script: &mut Script, place: u32) {
    while script.host.take_any().is_some() {}
    script.inject(&format!("P. {place}:{}(10) ack 1 win 32000", place + 10));
    script.read(place, 10);
}

#[test]
fn corpus_of_frames() {
    let mut script = Script::established_with(config(), "mss 1000,sackOK,wscale 7", 32_000);
    let mut place = 1;
    for line in CORPUS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let (_, hex) = line.rsplit_once(' ').expect("a name and bytes");
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
        let frame: Vec<u8> = (0..hex.len() / 2 * 2).step_by(2).map(byte).collect();
        script.host.receive(&frame);
        script.host.run_ms(1);
        goes_on(&mut script, place);
        place += 10;
    }
}

/// A change of a good packet: bytes replaced, cut, extended, checksums made right or left wrong.
#[derive(Debug, Clone)]
struct Mutation {
    template: usize,
    changes: Vec<(usize, u8)>,
    length: Option<usize>,
    repair: bool,
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let changes = proptest::collection::vec((0..80_usize, any::<u8>()), 0..6);
    (
        0..8_usize,
        changes,
        proptest::option::of(0..100_usize),
        any::<bool>(),
    )
        .prop_map(|(template, changes, length, repair)| Mutation {
            template,
            changes,
            length,
            repair,
        })
}

fn templates(script: &Script, place: u32) -> [Vec<u8>; 8] {
    let lines = [
        format!("P. {place}:{}(10) ack 1", place + 10),
        format!("F. {}:{}(0) ack 1", place + 2000, place + 2000),
        format!(". {place}:{place}(0) ack 1 <sack 1:2 3:4 5:6>"),
        "S 0:0(0) <mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 14>".to_owned(),
        format!("R {}:{}(0)", place + 1, place + 1),
        format!(". {place}:{place}(0) ack 1 <TS val 4 ecr 4>"),
        format!("S. {place}:{place}(0) ack 1 <mss 1>"),
        format!("U. {}:{}(20) ack 1", place + 5, place + 25),
    ];
    lines.map(|line| {
        script
            .segment(&parse(&line))
            .encode(script.peer_end, script.engine_end)
    })
}

fn apply(mutation: &Mutation, mut packet: Vec<u8>) -> Vec<u8> {
    // Not ports and addresses, nor the numbers that make it hit: those are other tests'.
    for (at, value) in &mutation.changes {
        let at = at % packet.len();
        if !(12..24).contains(&at) {
            packet[at] = *value;
        }
    }
    if let Some(length) = mutation.length {
        packet.resize(length, 0xa5);
    }
    if mutation.repair {
        crate::support::repair::checksums(&mut packet);
    }
    packet
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Random bytes.
    #[test]
    fn random_frames(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 1..40)) {
        let mut script = Script::established();
        for frame in &frames {
            script.host.receive(frame);
        }
        script.host.run_ms(10);
        goes_on(&mut script, 1);
    }

    /// Changed packets, with right checksums or wrong ones. A change may hit the connection; it may end it, not the engine.
    #[test]
    fn changed_packets(mutations in proptest::collection::vec(mutation(), 1..40)) {
        let mut script = Script::established_with(config(), "mss 1000,sackOK,wscale 7", 32_000);
        for mutation in &mutations {
            let packet = apply(mutation, templates(&script, 1)[mutation.template].clone());
            script.host.receive(&packet);
            script.host.run_ms(3);
        }
        script.host.run_ms(100_000);
        while script.host.take_any().is_some() {}
        // Others still connect.
        script.peer_end.set_port(50_000);
        script.inject("S 0:0(0) win 32000 <mss 1000>");
        script.expect("S. 0:0(0) ack 1");
    }
}
