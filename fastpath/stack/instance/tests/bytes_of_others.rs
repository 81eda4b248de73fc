//! What another process has written: any bytes are a message or are refused, and a message means what its bytes say.
use hopscope_stack_engine::SocketKind;
use hopscope_stack_instance::handed::policy::{Asked, Call, Policy, Whose, rules};
use hopscope_stack_instance::handed::{self, Handed};
use hopscope_stack_instance::programs::datagram::{HEADER, Head, Message};
use hopscope_stack_instance::programs::wire::{
    Accepted, Hello, MESSAGE_MAX, Name, OptionSet, Request, Response, Welcome, Which, from_bytes,
    to_bytes,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Lines that once were worth a look, each behind what it is for.
const CORPUS: &str = include_str!("bytes_of_others.txt");

/// Bytes of a message, some replaced, cut off or put in.
#[derive(Debug, Clone)]
struct Damage {
    replaced: Vec<(Index, u8)>,
    cut: Option<Index>,
    put: Option<(Index, Vec<u8>)>,
}

impl Damage {
    fn to(&self, bytes: &mut Vec<u8>) {
        for (at, byte) in &self.replaced {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
        }
        if let Some((at, more)) = &self.put {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, more.iter().copied());
        }
        if let Some(cut) = &self.cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
    }
}

/// What text of JSON and of rules is made of is more often there.
fn byte() -> impl Strategy<Value = u8> {
    const OWN: &[u8] = br#"{}[]",:0123456789-+.eE\nul/=# "#;
    any::<(bool, u8)>().prop_map(|(is_own, byte)| match is_own {
        true => OWN[usize::from(byte) % OWN.len()],
        false => byte,
    })
}

fn damage() -> impl Strategy<Value = Damage> {
    (
        vec((any::<Index>(), byte()), 0..4),
        option::weighted(0.2, any::<Index>()),
        option::weighted(0.2, (any::<Index>(), vec(byte(), 0..20))),
    )
        .prop_map(|(replaced, cut, put)| Damage { replaced, cut, put })
}

fn ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<Ipv4Addr>().prop_map(IpAddr::V4),
        any::<Ipv6Addr>().prop_map(IpAddr::V6),
    ]
}

fn at() -> impl Strategy<Value = SocketAddr> {
    (ip(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip, port))
}

fn name() -> impl Strategy<Value = Name> {
    (any::<u32>(), any::<u32>()).prop_map(|(row, generation)| Name { row, generation })
}

fn options() -> impl Strategy<Value = Vec<OptionSet>> {
    vec((any::<i32>(), any::<i32>(), vec(any::<u8>(), 0..9)), 0..4)
}

fn which() -> impl Strategy<Value = Which> {
    let new = (any::<bool>(), option::of(at()), options());
    prop_oneof![
        name().prop_map(Which::There),
        new.prop_map(|(ipv6, local, options)| Which::New {
            ipv6,
            local,
            options
        }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        which().prop_map(Request::Bind),
        (which(), any::<u32>()).prop_map(|(which, backlog)| Request::Listen { which, backlog }),
        (which(), at(), any::<u32>()).prop_map(|(which, peer, filled)| Request::Connect {
            which,
            peer,
            filled
        }),
        (name(), any::<(i32, i32)>(), vec(any::<u8>(), 0..40)).prop_map(
            |(name, (level, option), value)| Request::SetOption {
                name,
                option: (level, option, value)
            }
        ),
        (name(), any::<i32>(), any::<i32>()).prop_map(|(name, level, option)| Request::Option {
            name,
            level,
            option
        }),
        (
            any::<(bool, bool)>(),
            option::of(at()),
            options(),
            any::<u8>()
        )
            .prop_map(
                |((ipv6, everywhere), local, options, wants)| Request::Datagrams {
                    ipv6,
                    local,
                    everywhere,
                    options,
                    wants
                }
            ),
        (name(), option::of(at()), any::<bool>()).prop_map(|(name, peer, by_kernel)| {
            Request::DatagramsConnect {
                name,
                peer,
                by_kernel,
            }
        }),
        vec(any::<u64>(), 0..9).prop_map(|inodes| Request::Whose { inodes }),
        Just(Request::Share),
        Just(Request::Settle),
    ]
}

/// Whatever they are taken for, they are that, or nothing.
fn is_taken_or_refused(bytes: &[u8]) {
    if let Ok(request) = from_bytes::<Request>(bytes) {
        assert_eq!(from_bytes(&to_bytes(&request)), Ok(request));
    }
    if let Ok(hello) = from_bytes::<Hello>(bytes) {
        assert_eq!(from_bytes(&to_bytes(&hello)), Ok(hello));
    }
    if let Ok(response) = from_bytes::<Response>(bytes) {
        assert_eq!(from_bytes(&to_bytes(&response)), Ok(response));
    }
    let _ = from_bytes::<Welcome>(bytes);
    if let Ok(handed) = handed::parse(bytes) {
        assert_eq!(handed.version, env!("CARGO_PKG_VERSION"));
        assert!(handed.inline().is_some() != handed.instance().is_some());
        asks(&handed.policy);
        if let Some(inline) = handed.inline() {
            let config = inline.engine.config(&handed.reach, [0; 32]);
            assert_eq!(config.addresses.len(), handed.reach.addresses.len());
        }
    }
    let text = String::from_utf8_lossy(bytes);
    match rules(&text) {
        Ok(rules) => asks(&Policy {
            wildcard_is_stack: false,
            rules,
        }),
        Err(why) => assert!(why.contains("line ") || why.contains("more than"), "{why}"),
    }
}

/// Sockets of all kinds.
fn asks(policy: &Policy) {
    let places = [
        "0.0.0.0:0",
        "[::]:65535",
        "[::ffff:10.0.0.1]:80",
        "127.0.0.1:22",
    ];
    for place in places {
        for kind in [SocketKind::Tcp, SocketKind::Udp] {
            for call in [Call::Bind, Call::Connect] {
                let at = place.parse().unwrap();
                let asked = Asked { kind, call, at };
                let whose = policy.whose(asked);
                assert!(!policy.gives_loopback(asked) || whose == Some(Whose::Stack));
            }
        }
    }
}

/// Of a rule, to be written and to be applied by hand.
#[derive(Debug, Clone)]
struct Written {
    stack: bool,
    udp: Option<bool>,
    bind: Option<bool>,
    prefix: Option<(Ipv4Addr, u8)>,
    ports: Vec<(u16, u16)>,
}

fn written() -> impl Strategy<Value = Written> {
    // Few, so that rules and sockets meet.
    let port = 0..6_u16;
    let ports = (port.clone(), port).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let prefix =
        (0..4_u8, 0..=32_u8).prop_map(|(last, bits)| (Ipv4Addr::new(10, 0, 0, last), bits));
    (
        any::<bool>(),
        option::of(any::<bool>()),
        option::of(any::<bool>()),
        option::of(prefix),
        vec(ports, 0..3),
    )
        .prop_map(|(stack, udp, bind, prefix, ports)| Written {
            stack,
            udp,
            bind,
            prefix,
            ports,
        })
}

impl Written {
    fn text(&self) -> String {
        let mut text = String::from(if self.stack { "stack" } else { "kernel" });
        if let Some(udp) = self.udp {
            text += if udp { " udp" } else { "\ttcp" };
        }
        if !self.ports.is_empty() {
            let part = |(a, b): &(u16, u16)| match a == b {
                true => a.to_string(),
                false => format!("{a}-{b}"),
            };
            let parts: Vec<String> = self.ports.iter().map(part).collect();
            write!(text, "  port={}", parts.join(",")).unwrap();
        }
        if let Some((ip, bits)) = self.prefix {
            write!(text, " address={ip}/{bits}").unwrap();
        }
        if let Some(bind) = self.bind {
            text += if bind { " bind # so" } else { " connect" };
        }
        text
    }

    fn fits(&self, asked: Asked) -> bool {
        let IpAddr::V4(ip) = asked.at.ip() else {
            return self.prefix.is_none();
        };
        let mask = |bits: u8| u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
        self.udp
            .is_none_or(|udp| udp == (asked.kind == SocketKind::Udp))
            && self
                .bind
                .is_none_or(|bind| bind == (asked.call == Call::Bind))
            && self
                .prefix
                .is_none_or(|(of, bits)| (of.to_bits() ^ ip.to_bits()) & mask(bits) == 0)
            && (self.ports.is_empty()
                || self
                    .ports
                    .iter()
                    .any(|(a, b)| (a..=b).contains(&&asked.at.port())))
    }
}

fn handed_over() -> Vec<u8> {
    let text = format!(
        r#"{{"version":"{}","stack":{{"Inline":{{"port":{{"device":"near","index":3,"fd":4,"max_frame_len":65536,"receive_frames":8192,"gso":true,"kept":5,"claims":[6]}},
        "engine":{{"mac":[2,0,0,0,0,1],"mtu":1500,"mtu_most":null,"offload":true,"lan":false,"cubic":true,"wmem":[212992,4194304],"rmem":[212992,4194304],"ports":[32768,60999]}}}}}},
        "reach":{{"addresses":[["10.0.0.2",24],["fd00::2",64]],"routes":[["0.0.0.0",0,"10.0.0.1"]]}},
        "policy":{{"wildcard_is_stack":true,"rules":[{{"whose":"Kernel","program":"sshd","udp":false,"call":"Bind","address":["10.0.0.0",8],"ports":[[22,22]]}}]}},
        "trace":false}}"#,
        env!("CARGO_PKG_VERSION")
    );
    text.into_bytes()
}

#[test]
fn the_kept_corpus_is_taken_or_refused() {
    let lines = CORPUS.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let (_, bytes) = line.split_once(' ').unwrap();
        is_taken_or_refused(bytes.as_bytes());
        count += 1;
    }
    assert!(count > 10, "{count} lines");
}

/// As deep as a message has room for.
#[test]
fn nested_messages_are_refused() {
    for open in ["[", "{\"Bind\":", "{\"stack\":", "{\"version\":["] {
        let deep = open.repeat(MESSAGE_MAX / open.len());
        is_taken_or_refused(deep.as_bytes());
        assert!(from_bytes::<Request>(deep.as_bytes()).is_err());
        assert!(handed::parse(deep.as_bytes()).is_err());
    }
}

#[test]
fn what_is_handed_over_is_read_by_its_own_version_alone() {
    let text = String::from_utf8(handed_over()).unwrap();
    let handed: Handed = handed::parse(text.as_bytes()).unwrap();
    assert_eq!(handed.descriptors(), [4, 5, 6]);
    assert_eq!(handed.reach.addresses.len(), 2);
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let other = text.replace(&version, "\"version\":\"0.0.9\"");
    assert_eq!(
        handed::parse(other.as_bytes()).unwrap_err(),
        "made by version 0.0.9"
    );
}

proptest! {
    #[test]
    fn bytes_are_taken_or_refused(bytes in vec(byte(), 0..100)) {
        is_taken_or_refused(&bytes);
    }

    #[test]
    fn damaged_requests_are_taken_or_refused(request in request(), damage in damage()) {
        let mut bytes = to_bytes(&request);
        prop_assert_eq!(from_bytes::<Request>(&bytes), Ok(request));
        damage.to(&mut bytes);
        is_taken_or_refused(&bytes);
    }

    #[test]
    fn damaged_configurations_are_taken_or_refused(damage in damage()) {
        let mut bytes = handed_over();
        damage.to(&mut bytes);
        is_taken_or_refused(&bytes);
    }

    #[test]
    fn damaged_rules_are_taken_or_refused(rules in vec(written(), 0..6), damage in damage()) {
        let mut bytes = rules.iter().map(Written::text).collect::<Vec<_>>().join("\n").into_bytes();
        damage.to(&mut bytes);
        is_taken_or_refused(&bytes);
    }

    #[test]
    fn rules_mean_what_they_say(written in vec(written(), 0..6), places in vec((any::<bool>(), any::<bool>(), 0..5_u8, 0..7_u16), 1..8)) {
        let text = written.iter().map(Written::text).collect::<Vec<_>>().join("\n");
        let policy = Policy { wildcard_is_stack: false, rules: rules(&text).unwrap() };
        for (udp, bind, last, port) in places {
            let at = SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), port));
            let kind = if udp { SocketKind::Udp } else { SocketKind::Tcp };
            let asked = Asked { kind, call: if bind { Call::Bind } else { Call::Connect }, at };
            let first = written.iter().find(|rule| rule.fits(asked));
            let whose = first.map(|rule| if rule.stack { Whose::Stack } else { Whose::Kernel });
            prop_assert_eq!(policy.whose(asked), whose, "{} {:?}", text, asked);
        }
    }

    #[test]
    fn headers_are_taken_or_refused(bytes in vec(any::<u8>(), HEADER), kind in 0..3_u8, flags in 0..80_u8) {
        let mut header = [0; HEADER];
        header.copy_from_slice(&bytes);
        prop_assert!(header[0] < 3 || Message::from_bytes(&header).is_none());
        (header[0], header[1]) = (kind, flags);
        if let Some(message) = Message::from_bytes(&header) {
            prop_assert_eq!(Message::from_bytes(&message.to_bytes()), Some(message));
        }
    }

    #[test]
    fn headers_say_where_to(peer in option::of(at()), local in option::of(ip()), hops in option::of(any::<u8>()), class in option::of(any::<u8>()), interface in any::<u32>()) {
        let head = Head { peer, local, hop_limit: hops, traffic_class: class, interface, answers: None };
        let message = Message::Datagram(head);
        prop_assert_eq!(Message::from_bytes(&message.to_bytes()), Some(message));
    }

    #[test]
    fn connections_are_taken_or_refused(bytes in any::<[u8; Accepted::BYTES]>(), kind in 0..5_u8) {
        let mut message = bytes;
        message[..4].copy_from_slice(&[kind, 0, 0, 0]);
        match Accepted::from_bytes(message) {
            Some(accepted @ Accepted::Ours(_)) => prop_assert_eq!(accepted.to_bytes(), message),
            Some(Accepted::Kernel) => prop_assert_eq!(kind, 2),
            Some(Accepted::Unlistened) => prop_assert_eq!(kind, 3),
            None => prop_assert!(kind == 0 || kind == 4),
        }
    }
}
