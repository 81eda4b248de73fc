//! Packet scripts: inject a segment, expect a segment. One connection of one host, numbers relative to both initial
//! sequence numbers; payload is a function of its place in the stream and is verified on the way.
use super::host::{ENGINE_V4, Host, PEER_V4, config};
use super::notation::{Line, parse};
use super::packet::{ACK, SYN, Segment, TcpOption};
use hopscope_stack_engine::{
    Config, Connection, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketKind, TcpInfo,
    TcpState,
};
use std::net::SocketAddr;

/// Wraps soon, so that scripts of some kilobytes cross zero.
const PEER_ISS: u32 = u32::MAX - 5_000;

pub struct Script {
    pub host: Host,
    pub engine_end: SocketAddr,
    pub peer_end: SocketAddr,
    pub peer_iss: u32,
    /// Learned from the first segment that has SYN.
    pub engine_iss: u32,
    pub listener: Option<SocketId>,
    /// The connection's socket.
    pub socket: Option<SocketId>,
    /// When the last expected segment was sent.
    pub last_at: Ns,
}

/// The byte at a place of a stream, counted from the initial sequence number.
pub fn byte_at(place: u32) -> u8 {
    (place.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

pub fn payload(place: u32, length: u32) -> Vec<u8> {
    (0..length)
        .map(|i| byte_at(place.wrapping_add(i)))
        .collect()
}

impl Script {
    pub fn new(config: Config) -> Script {
        let end = |address: &str, port| SocketAddr::new(address.parse().expect("an address"), port);
        Script {
            host: Host::new(config),
            engine_end: end(ENGINE_V4, 80),
            peer_end: end(PEER_V4, 40_000),
            peer_iss: PEER_ISS,
            engine_iss: 0,
            listener: None,
            socket: None,
            last_at: Ns(0),
        }
    }

    pub fn listening(config: Config) -> Script {
        let mut script = Script::new(config);
        script.listener = Some(script.host.listen(80, 16));
        script
    }

    /// Passively opened by a SYN of these options; accepted.
    pub fn established_with(config: Config, options: &str, window: u16) -> Script {
        let mut script = Script::listening(config);
        script.inject(&format!("S 0:0(0) win {window} <{options}>"));
        script.expect("S. 0:0(0) ack 1");
        script.inject(&format!(". 1:1(0) ack 1 win {window}"));
        script.accept();
        script.expect_nothing();
        script
    }

    /// Without timestamps, SACK and scaling.
    pub fn established() -> Script {
        Script::established_with(config(), "mss 1000", 32_000)
    }

    pub fn connecting(config: Config) -> Script {
        let mut script = Script::new(config);
        let id = script
            .host
            .engine
            .socket(SocketKind::Tcp, false)
            .expect("a socket");
        script.socket = Some(id);
        script.peer_end.set_port(80);
        let (now, peer) = (script.host.now, script.peer_end);
        let started = script.host.engine.connect(now, id, Some(peer));
        assert_eq!(started, Err(SocketError::InProgress));
        script.host.pump();
        script.engine_end = script
            .host
            .engine
            .local_address(id)
            .expect("a local address");
        script
    }

    pub fn accept(&mut self) -> SocketId {
        let listener = self.listener.expect("a listener");
        let (id, from) = self.host.engine.accept(listener).expect("a connection");
        assert_eq!(from, self.peer_end);
        self.socket = Some(id);
        id
    }

    /// A segment of the peer, in [`parse`]'s notation.
    pub fn inject(&mut self, text: &str) {
        let packet = self
            .segment(&parse(text))
            .encode(self.peer_end, self.engine_end);
        self.host.receive(&packet);
    }

    /// The peer's segment that a line means.
    pub fn segment(&self, line: &Line) -> Segment {
        let to_engine = |number: u32| self.engine_iss.wrapping_add(number);
        let absolute = |option: &TcpOption| match option {
            TcpOption::Sack(blocks) => TcpOption::Sack(
                blocks
                    .iter()
                    .map(|(a, b)| (to_engine(*a), to_engine(*b)))
                    .collect(),
            ),
            other => other.clone(),
        };
        Segment {
            flags: line.flags,
            seq: self.peer_iss.wrapping_add(line.seq),
            ack: line.ack.map_or(0, to_engine),
            window: line.window.unwrap_or(32_000),
            options: line.options.iter().flatten().map(absolute).collect(),
            payload: payload(line.seq, line.length),
        }
    }

    /// The next segment that the engine sends, or sent, is this one.
    #[track_caller]
    pub fn expect(&mut self, text: &str) {
        self.host.pump();
        let (at, segment) = match self.take() {
            Some(sent) => sent,
            None => panic!("nothing was sent; expected {text}"),
        };
        self.last_at = at;
        let difference = self.difference(&segment, &parse(text));
        if let Some(difference) = difference {
            panic!(
                "{difference}\nexpected {text}\n     got {}",
                self.show(&segment)
            );
        }
    }

    /// As [`Script::expect`], and within the span after now; the clock then is where the segment was sent.
    #[track_caller]
    pub fn expect_within(&mut self, from: Ns, to: Ns, text: &str) {
        let begin = self.host.now;
        self.run_until_sent(to);
        self.expect(text);
        let after = self.last_at.since(begin);
        assert!(
            after >= from && after <= to,
            "{text} after {after:?}, not {from:?} to {to:?}"
        );
    }

    /// Lets time pass until something is sent, at most so long.
    pub fn run_until_sent(&mut self, most: Ns) {
        let end = self.host.now + most;
        self.host.pump();
        while self.host.sent.is_empty() {
            let at = self.host.engine.poll_at().filter(|at| *at <= end);
            let Some(at) = at else {
                self.host.now = end;
                return;
            };
            let span = at.since(self.host.now);
            self.host.run(span);
        }
    }

    #[track_caller]
    pub fn expect_nothing(&mut self) {
        self.host.pump();
        if let Some((_, segment)) = self.take() {
            panic!("expected nothing, got {}", self.show(&segment));
        }
    }

    /// The next segment of this connection that was sent.
    #[track_caller]
    pub fn take(&mut self) -> Option<(Ns, Segment)> {
        let (at, from, to, segment) = self.host.take_segment()?;
        assert_eq!(
            (from, to),
            (self.engine_end, self.peer_end),
            "another connection's segment"
        );
        if segment.has(SYN) {
            self.engine_iss = segment.seq;
        }
        Some((at, segment))
    }

    fn difference(&self, segment: &Segment, line: &Line) -> Option<&'static str> {
        let relative = |number: u32, base: u32| number.wrapping_sub(base);
        if segment.flags != line.flags {
            return Some("flags");
        }
        // A reset without ACK takes its number from the peer's ACK, which may be any.
        if relative(segment.seq, self.engine_iss) != line.seq {
            return Some("sequence number");
        }
        if segment.payload.len() != line.length as usize {
            return Some("length");
        }
        if segment.payload != payload(line.seq, line.length) {
            return Some("payload");
        }
        if segment.has(ACK)
            && line
                .ack
                .is_some_and(|ack| ack != relative(segment.ack, self.peer_iss))
        {
            return Some("acknowledgement number");
        }
        if line.window.is_some_and(|window| window != segment.window) {
            return Some("window");
        }
        let expected = line.options.as_ref()?;
        (self.plain(&segment.options) != self.stripped(expected)).then_some("options")
    }

    /// Without padding, with relative numbers; timestamps' own value is the engine's business.
    fn plain(&self, options: &[TcpOption]) -> Vec<TcpOption> {
        let relative = |number: u32| number.wrapping_sub(self.peer_iss);
        let plain = |option: TcpOption| match option {
            TcpOption::Sack(blocks) => TcpOption::Sack(
                blocks
                    .iter()
                    .map(|(a, b)| (relative(*a), relative(*b)))
                    .collect(),
            ),
            other => other,
        };
        self.stripped(options).into_iter().map(plain).collect()
    }

    fn stripped(&self, options: &[TcpOption]) -> Vec<TcpOption> {
        let kept = options
            .iter()
            .filter(|o| !matches!(o, TcpOption::Nop | TcpOption::End));
        let mut kept: Vec<TcpOption> = kept
            .map(|option| match option {
                TcpOption::Timestamps { echo, .. } => TcpOption::Timestamps {
                    value: 0,
                    echo: *echo,
                },
                other => other.clone(),
            })
            .collect();
        kept.sort_by_key(order);
        kept
    }

    pub fn show(&self, segment: &Segment) -> String {
        let names = [(2, 'S'), (1, 'F'), (4, 'R'), (8, 'P'), (16, '.'), (32, 'U')];
        let flags: String = names
            .iter()
            .filter(|(bit, _)| segment.has(*bit))
            .map(|(_, name)| name)
            .collect();
        let seq = segment.seq.wrapping_sub(self.engine_iss);
        let length = segment.payload.len() as u32;
        let end = seq.wrapping_add(length);
        let ack = segment.ack.wrapping_sub(self.peer_iss);
        let options = self.plain(&segment.options);
        format!(
            "{flags} {seq}:{end}({length}) ack {ack} win {} {options:?}",
            segment.window
        )
    }

    // The application's side.

    pub fn id(&self) -> SocketId {
        self.socket.expect("a connection")
    }

    /// Writes `length` bytes of the stream, which so far has `place - 1`.
    pub fn write(&mut self, place: u32, length: u32) -> usize {
        let (now, id) = (self.host.now, self.id());
        let written = self
            .host
            .engine
            .send(now, id, &payload(place, length), SendFlags::default());
        self.host.pump();
        written.expect("send")
    }

    /// Reads exactly the bytes of the peer's stream from `place` on.
    #[track_caller]
    pub fn read(&mut self, place: u32, length: u32) {
        let mut into = vec![0; length as usize];
        let mut filled = 0;
        while filled < into.len() {
            let read = self.recv(&mut into[filled..]);
            let read =
                read.unwrap_or_else(|error| panic!("{error} after {filled} of {length} bytes"));
            assert!(read > 0, "end of stream after {filled} of {length} bytes");
            filled += read;
        }
        assert!(into == payload(place, length), "other bytes than were sent");
    }

    pub fn recv(&mut self, into: &mut [u8]) -> Result<usize, SocketError> {
        let (now, id) = (self.host.now, self.id());
        let read = self.host.engine.recv(now, id, into, RecvFlags::default());
        self.host.pump();
        read
    }

    pub fn info(&self) -> TcpInfo {
        self.host
            .engine
            .tcp_info(self.host.now, self.id())
            .expect("tcp_info")
    }

    /// Of the connection between both ends, whoever holds it. Closed: there is none, besides a socket that was left.
    pub fn state(&self) -> TcpState {
        let ours = |c: &Connection| c.local == self.engine_end && c.peer == Some(self.peer_end);
        let states = self
            .host
            .engine
            .connections(self.host.now)
            .filter(ours)
            .map(|c| c.state);
        states
            .filter(|state| *state != TcpState::Closed)
            .last()
            .unwrap_or(TcpState::Closed)
    }
}

fn order(option: &TcpOption) -> u8 {
    match option {
        TcpOption::End => 0,
        TcpOption::Nop => 1,
        TcpOption::Mss(_) => 2,
        TcpOption::WindowScale(_) => 3,
        TcpOption::SackPermitted => 4,
        TcpOption::Sack(_) => 5,
        TcpOption::Timestamps { .. } => 8,
        TcpOption::Raw(_) => 255,
    }
}
