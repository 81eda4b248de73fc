//! Packets as slices from send to receive, on as many tracks as are under way at once.
use super::lanes::{LANES_MAX, Lanes};
use super::{Event, LANE, Name, Note, Perfetto, STREAM, Track, What};
use hopscope_event::{Stamp, StampFlags, StreamIx};
use std::io::{self, Write};

const PACKET: &str = "packet";

/// The flow of a packet: all that happened to it. Never 0.
pub(super) fn flow_of(stream: StreamIx, seq: u64) -> u64 {
    (u64::from(stream.0) << 48)
        .wrapping_add(seq)
        .wrapping_add(1)
}

fn lane_track(stream: StreamIx, lane: usize) -> Track {
    Track(LANE | u64::from(stream.0) << 24 | lane as u64)
}

/// Of what arrived, and of what did not.
fn arrivals(stream: StreamIx) -> Track {
    lane_track(stream, LANES_MAX)
}

fn losses(stream: StreamIx) -> Track {
    lane_track(stream, LANES_MAX + 1)
}

impl<W: Write> Perfetto<'_, W> {
    fn stream(&mut self, stream: StreamIx) -> io::Result<()> {
        if self.streams.contains_key(&stream) {
            return Ok(());
        }
        self.streams.insert(stream, Lanes::default());
        let entries = self.recording.streams.entries;
        let name = match entries.iter().find(|s| s.ix == stream) {
            Some(s) => format!("packets {} to {}: {}", s.sender, s.receiver, s.traffic),
            None => format!("packets of stream {}", stream.0),
        };
        let parent = Track(STREAM | u64::from(stream.0));
        self.file.track(parent, None, &name)?;
        self.file.track(arrivals(stream), Some(parent), "arrived")?;
        self.file.track(losses(stream), Some(parent), "lost")
    }

    fn lane(&mut self, stream: StreamIx, from: u64, to: u64) -> io::Result<Option<Track>> {
        let lanes = self.streams.entry(stream).or_default();
        let before = lanes.len();
        let Some(lane) = lanes.place(from, to) else {
            self.counts.without_lane += 1;
            return Ok(None);
        };
        let track = lane_track(stream, lane);
        if lane == before {
            let parent = Track(STREAM | u64::from(stream.0));
            self.file.track(track, Some(parent), "under way")?;
        }
        Ok(Some(track))
    }

    /// One row of the stamps.
    ///
    /// # Errors
    /// Those of the output.
    pub fn packet(&mut self, stream: StreamIx, stamp: &Stamp) -> io::Result<()> {
        self.stream(stream)?;
        let flow = [flow_of(stream, stamp.seq)];
        let name = format!("seq {} flow {}", stamp.seq, stamp.flow);
        let sent = self.timeline.monotonic_ns(stamp.sent);
        let received = stamp.received.map(|r| self.timeline.monotonic_ns(r));
        let mut notes = vec![
            ("seq", Note::Unsigned(stamp.seq)),
            ("flow", Note::Unsigned(stamp.flow.into())),
            ("frame_bytes", Note::Unsigned(stamp.len.into())),
        ];
        if let Some(latency) = stamp.latency_ticks() {
            notes.push(("latency_ns", Note::Float(self.ns(latency))));
        }
        let flags = stamp.flags.to_string();
        if stamp.flags != StampFlags::NONE {
            notes.push(("flags", Note::Text(&flags)));
        }
        let instant = |track, at_ns, notes, last_of_flows| Event {
            track,
            at_ns,
            what: What::Instant(Name::Here(&name)),
            category: PACKET,
            notes,
            flows: &[],
            last_of_flows,
        };
        let Some(received) = received else {
            // The run that handled it may still be known.
            let lost = Event {
                flows: &flow,
                ..instant(losses(stream), sent, &notes, &[])
            };
            return self.file.event(&lost);
        };
        if stamp.flags.contains(StampFlags::DUPLICATE) {
            let again = instant(arrivals(stream), received, &notes, &[]);
            return self.file.event(&again);
        }
        if let Some(track) = self.lane(stream, sent, received)? {
            let begin = Event {
                track,
                what: What::Begin(Name::Here(&name)),
                flows: &flow,
                ..instant(track, sent, &notes, &[])
            };
            self.file.event(&begin)?;
            let end = Event {
                what: What::End,
                ..instant(track, received.max(sent), &[], &[])
            };
            self.file.event(&end)?;
        }
        let arrived = instant(arrivals(stream), received, &[], &flow);
        self.file.event(&arrived)
    }
}
