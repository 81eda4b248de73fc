//! The messages of a Perfetto trace (`protos/perfetto/trace` of the Perfetto project), one packet
//! after another. Numbers are those of the `.proto` files; a test decodes what is written here
//! with the official descriptors.
use super::proto::Message;
use hopscope_event::ClockSync;
use std::io::{self, Write};

const TRACE_PACKET: u64 = 1;
// TracePacket
const CLOCK_SNAPSHOT: u64 = 6;
const TIMESTAMP: u64 = 8;
const SEQUENCE_ID: u64 = 10;
const TRACK_EVENT: u64 = 11;
const INTERNED_DATA: u64 = 12;
const SEQUENCE_FLAGS: u64 = 13;
const TIMESTAMP_CLOCK_ID: u64 = 58;
const DEFAULTS: u64 = 59;
const TRACK_DESCRIPTOR: u64 = 60;
const FIRST_ON_SEQUENCE: u64 = 87;

const INCREMENTAL_STATE_CLEARED: u64 = 1;
const NEEDS_INCREMENTAL_STATE: u64 = 2;
/// Any number but 0; all packets are of one sequence, so that names are interned once.
const SEQUENCE: u64 = 1;
const REALTIME: u64 = 1;
const MONOTONIC: u64 = 3;

/// A row of the time line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Track(pub(super) u64);

/// Names of functions are written once and referred to; others stand with the event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'a> {
    Interned(u64),
    Here(&'a str),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What<'a> {
    Begin(Name<'a>),
    End,
    Instant(Name<'a>),
}

/// A value shown with an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Note<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) track: Track,
    pub(super) at_ns: u64,
    pub(super) what: What<'a>,
    pub(super) category: &'a str,
    pub(super) notes: &'a [(&'a str, Note<'a>)],
    /// Events with one flow are joined by arrows, in the order of time.
    pub(super) flows: &'a [u64],
    /// Flows that end here.
    pub(super) last_of_flows: &'a [u64],
}

pub(super) struct TraceFile<W: Write> {
    out: W,
}

impl<W: Write> TraceFile<W> {
    /// Begins the sequence: all times are CLOCK_MONOTONIC.
    pub(super) fn new(out: W, clocks: &[ClockSync]) -> io::Result<TraceFile<W>> {
        let mut file = TraceFile { out };
        let defaults = Message::new().number(TIMESTAMP_CLOCK_ID, MONOTONIC);
        let first = Message::new()
            .number(SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED)
            .number(FIRST_ON_SEQUENCE, 1)
            .message(DEFAULTS, &defaults);
        file.packet(first)?;
        for point in clocks {
            let clock = |id, ns| Message::new().number(1, id).number(2, ns);
            let snapshot = Message::new()
                .message(1, &clock(MONOTONIC, point.monotonic_ns))
                .message(1, &clock(REALTIME, point.realtime_ns))
                .number(2, MONOTONIC);
            let stamped = Message::new().number(TIMESTAMP, point.monotonic_ns);
            file.packet(stamped.message(CLOCK_SNAPSHOT, &snapshot))?;
        }
        Ok(file)
    }

    fn packet(&mut self, fields: Message) -> io::Result<()> {
        let packet = fields.number(SEQUENCE_ID, SEQUENCE);
        let whole = Message::new().message(TRACE_PACKET, &packet);
        self.out.write_all(whole.bytes())
    }

    fn stateful(&mut self, fields: Message) -> io::Result<()> {
        self.packet(fields.number(SEQUENCE_FLAGS, NEEDS_INCREMENTAL_STATE))
    }

    /// `number` of [`Name::Interned`]; never 0.
    pub(super) fn intern(&mut self, number: u64, name: &str) -> io::Result<()> {
        let event_name = Message::new().number(1, number).text(2, name);
        let interned = Message::new().message(2, &event_name);
        self.stateful(Message::new().message(INTERNED_DATA, &interned))
    }

    pub(super) fn process(&mut self, track: Track, pid: i32, name: &str) -> io::Result<()> {
        let process = Message::new().signed(1, pid.into()).text(6, name);
        let descriptor = Message::new().number(1, track.0).message(3, &process);
        self.packet(Message::new().message(TRACK_DESCRIPTOR, &descriptor))
    }

    pub(super) fn thread(
        &mut self,
        track: Track,
        parent: Track,
        (pid, tid): (i32, i32),
        name: &str,
    ) -> io::Result<()> {
        let thread = Message::new()
            .signed(1, pid.into())
            .signed(2, tid.into())
            .text(5, name);
        let descriptor = Message::new()
            .number(1, track.0)
            .number(5, parent.0)
            .message(4, &thread);
        self.packet(Message::new().message(TRACK_DESCRIPTOR, &descriptor))
    }

    /// A track of neither a process nor a thread.
    pub(super) fn track(
        &mut self,
        track: Track,
        parent: Option<Track>,
        name: &str,
    ) -> io::Result<()> {
        let mut descriptor = Message::new().number(1, track.0).text(2, name);
        if let Some(parent) = parent {
            descriptor = descriptor.number(5, parent.0);
        }
        self.packet(Message::new().message(TRACK_DESCRIPTOR, &descriptor))
    }

    pub(super) fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let mut fields = Message::new();
        for (name, note) in event.notes {
            let annotation = Message::new();
            let annotation = match *note {
                Note::Unsigned(n) => annotation.number(3, n),
                Note::Signed(n) => annotation.signed(4, n),
                Note::Float(n) => annotation.double(5, n),
                Note::Text(text) => annotation.text(6, text),
            };
            fields = fields.message(4, &annotation.text(10, name));
        }
        let (kind, name) = match event.what {
            What::Begin(name) => (1, Some(name)),
            What::End => (2, None),
            What::Instant(name) => (3, Some(name)),
        };
        fields = fields.number(9, kind).number(11, event.track.0);
        match name {
            Some(Name::Interned(number)) => fields = fields.number(10, number),
            Some(Name::Here(name)) => fields = fields.text(23, name),
            None => {}
        }
        if name.is_some() {
            fields = fields.text(22, event.category);
        }
        for flow in event.flows {
            fields = fields.fixed64(47, *flow);
        }
        for flow in event.last_of_flows {
            fields = fields.fixed64(48, *flow);
        }
        let stamped = Message::new().number(TIMESTAMP, event.at_ns);
        self.stateful(stamped.message(TRACK_EVENT, &fields))
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
