//! What to send next: retransmissions, a tail loss probe, new data, a window probe, an acknowledgement, in this order.
use super::state::Connection;
use crate::tcp::context::Context;
use crate::tcp::sender::SentKind;
use crate::tcp::seq::{Seq, SeqRange};
use crate::wire::tcp::{Flags, Header};
use crate::wire::tcp_options::Timestamps;

/// A segment, or several of them for the device to cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emit {
    pub(crate) header: Header,
    /// Payload: where it begins in the send buffer, and its length in bytes.
    pub(crate) offset: usize,
    pub(crate) payload_bytes: usize,
    /// Payload bytes of each segment.
    pub(crate) segment_bytes: u32,
}

/// Payload and options of a frame, in bytes: 65,535 of IP less the largest headers, so that the device can cut it.
const MAX_FRAME_PAYLOAD: u32 = 65_535 - 40 - 20 - 40;

impl Connection {
    /// The next segment, which counts as sent from now on. `gso`: it may be larger than MSS.
    pub(crate) fn output(&mut self, cx: &mut Context, gso: bool) -> Option<Emit> {
        let emit = self.choose(cx, gso);
        if emit.is_none() {
            self.note_limit(cx.now);
            self.send.force = false;
            self.arm_window_probe(cx);
        }
        emit
    }

    fn choose(&mut self, cx: &mut Context, gso: bool) -> Option<Emit> {
        let room = self.segment_room();
        let largest = if gso {
            (MAX_FRAME_PAYLOAD / room).max(1)
        } else {
            1
        };
        if let Some(range) = self.retransmission(room) {
            let least = cx.config.min_frame_segments;
            let most = self.sender.segments_by_rate(least).min(largest) * room;
            let range = self.retransmission(most).unwrap_or(range);
            return Some(self.emit_data(cx, range, SentKind::Retransmission, room));
        }
        if let Some(last) = self.tail.take() {
            return self.emit_tail_probe(cx, last, room);
        }
        if let Some(range) = self.new_data(cx, largest, room) {
            return Some(self.emit_data(cx, range, SentKind::Fresh, room));
        }
        if std::mem::take(&mut self.probes.pending) {
            return Some(self.emit_empty(cx, self.sender.snd_una() - 1));
        }
        self.ack.now.then(|| {
            let seq = self.acceptable_seq();
            self.emit_empty(cx, seq)
        })
    }

    /// Payload bytes of a segment with the options that it would have now.
    fn segment_room(&self) -> u32 {
        let blocks = if self.sack {
            self.receive.sacks.count()
        } else {
            0
        };
        let most = if self.ts.on { 3 } else { 4 };
        let sack = match blocks.min(most) as u32 {
            0 => 0,
            blocks => 4 + 8 * blocks,
        };
        self.sender.mss().saturating_sub(sack).max(1)
    }

    /// Never beyond the window, but for the first byte that is not acknowledged: a peer may have shrunk it (RFC 9293, 3.8.6).
    fn retransmission(&self, most: u32) -> Option<SeqRange> {
        let mut range = self.sender.next_retransmission(most)?;
        let edge = self.send_edge();
        if range.end.after(edge) && self.send.window > 0 {
            if range.start.from(edge) && range.start != self.sender.snd_una() {
                return None;
            }
            if edge.after(range.start) && range.end.since(edge) > i32::from(self.send.fin) {
                range.end = edge;
            }
        }
        Some(range)
    }

    fn emit_tail_probe(&mut self, cx: &mut Context, last: SeqRange, room: u32) -> Option<Emit> {
        let nxt = self.sender.snd_nxt();
        let usable = self.send_edge().since(nxt).max(0) as u32;
        let fresh = self.unsent().min(usable).min(room);
        if fresh > 0 && (fresh == room || fresh == self.unsent()) {
            return Some(self.emit_data(cx, SeqRange::of(nxt, fresh), SentKind::TailProbe, room));
        }
        let una = self.sender.snd_una();
        if last.end.until(una) || !last.is_ordered() {
            self.sender.probe_not_sent(cx.now);
            return None;
        }
        let start = last.start.later(last.end - room).later(una);
        let range = SeqRange::new(start, last.end);
        Some(self.emit_data(cx, range, SentKind::TailProbe, room))
    }

    /// RFC 9293, 3.8.6.2.1 (silly window) and 3.7.4 (Nagle); what congestion control lets out. `largest`: segments of a frame.
    fn new_data(&mut self, cx: &mut Context, largest: u32, room: u32) -> Option<SeqRange> {
        let unsent = self.unsent();
        if unsent == 0 {
            return None;
        }
        let nxt = self.sender.snd_nxt();
        let usable = unsent.min(self.send_edge().since(nxt).max(0) as u32);
        if usable == 0 {
            return None;
        }
        let bytes = self.unsent_bytes();
        if usable == unsent && bytes < room && !self.may_send_partial(bytes) {
            return None;
        }
        // A FIN alone does not wait for congestion control (Linux tcp_cwnd_test).
        let allowed = match bytes {
            0 if usable == unsent => usable,
            _ => self.sender.sendable_new(cx.now, usable).min(usable),
        };
        let most = if bytes > room && largest > 1 {
            let least = cx.config.min_frame_segments;
            self.sender.segments_by_window(least).min(largest) * room
        } else {
            room
        };
        if allowed == unsent && bytes <= most {
            let partial = bytes % room;
            let held = partial > 0 && bytes > room && !self.may_send_partial(bytes);
            let len = if held { bytes - partial } else { unsent };
            return Some(SeqRange::of(nxt, len));
        }
        let len = allowed.min(bytes).min(most);
        let whole = len - len % room;
        if whole > 0 {
            return Some(SeqRange::of(nxt, whole));
        }
        // Less than a segment fits: the window is small, or congestion control lets out all that there is.
        let fits = self.send.force || allowed == unsent;
        (fits && len > 0).then(|| SeqRange::of(nxt, len))
    }

    /// Nagle in Minshall's variant, as Linux has it: one partial segment may be on its way.
    fn may_send_partial(&self, bytes: u32) -> bool {
        if self.send.fin || self.send.force {
            return true;
        }
        if self.options.cork || self.send.hold {
            return bytes == 0;
        }
        let una = self.sender.snd_una();
        let small_out = self.send.small.after(una) && self.send.small.until(self.sender.snd_nxt());
        self.options.no_delay || una == self.sender.snd_nxt() || !small_out
    }

    fn emit_data(&mut self, cx: &mut Context, range: SeqRange, kind: SentKind, room: u32) -> Emit {
        let una = self.sender.snd_una();
        let data_end = range.end.earlier(self.send.end);
        let payload_bytes = data_end.since(range.start).max(0) as u32;
        let mut flags = Flags::ACK;
        if range.end.after(self.send.end) {
            flags = flags.and(Flags::FIN);
        }
        // RFC 9293, 3.9.1.2: at the end of what was written; MSG_MORE says that it is none. The last of several segments in a frame has it as
        // in Linux: the peer's GRO hands them up at once.
        let pushed = data_end == self.send.end && !self.send.more;
        if payload_bytes > 0 && (pushed || payload_bytes > room) {
            flags = flags.and(Flags::PSH);
        }
        let header = self.header(cx, range.start, flags);
        self.sender.sent(cx.now, range, kind, cx.counters);
        if !payload_bytes.is_multiple_of(room) {
            self.send.small = data_end;
        }
        self.last_data_sent = cx.now;
        self.ack.data_sent(cx.now);
        self.probes.window_deadline = None;
        self.totals.segs_out += payload_bytes.div_ceil(room).max(1);
        cx.counters.tcp_out_segs += u64::from(payload_bytes.div_ceil(room).max(1));
        Emit {
            header,
            offset: (range.start - una) as usize,
            payload_bytes: payload_bytes as usize,
            segment_bytes: room,
        }
    }

    fn emit_empty(&mut self, cx: &mut Context, seq: Seq) -> Emit {
        self.totals.segs_out += 1;
        cx.counters.tcp_out_segs += 1;
        Emit {
            header: self.header(cx, seq, Flags::ACK),
            offset: 0,
            payload_bytes: 0,
            segment_bytes: 0,
        }
    }

    /// A number that the peer finds acceptable, also when it shrank its window (Linux tcp_acceptable_seq).
    fn acceptable_seq(&self) -> Seq {
        let (nxt, edge) = (self.sender.snd_nxt(), self.send_edge());
        let rounding = nxt.since(edge) < 1 << self.send.wscale;
        if edge.from(nxt) || rounding {
            nxt
        } else {
            edge
        }
    }

    /// With acknowledgement, window and options as they are now; they count as told.
    pub(crate) fn header(&mut self, cx: &mut Context, seq: Seq, flags: Flags) -> Header {
        let window = self.select_window(cx);
        let most = if self.ts.on { 3 } else { 4 };
        let mut header = Header {
            source_port: self.tuple.local_port,
            destination_port: self.tuple.peer_port,
            seq: seq.0,
            ack: self.receive.next.0,
            flags,
            window,
            ..Header::default()
        };
        header.options.timestamps = self.stamps(cx.now);
        if self.sack && !self.receive.sacks.is_empty() {
            header.options.sack = self.receive.sacks.blocks(most);
            self.receive.sacks.sent();
        }
        self.ack.sent(cx.config);
        header
    }

    pub(crate) fn stamps(&self, now: crate::Ns) -> Option<Timestamps> {
        self.ts.on.then(|| Timestamps {
            value: self.timestamp(now),
            echo: self.ts.recent,
        })
    }

    /// Whether [`Connection::output`] may have something.
    pub(crate) fn wants_output(&self) -> bool {
        self.ack.now
            || self.unsent() > 0
            || self.probes.pending
            || self.tail.is_some()
            || self.sender.next_retransmission(1).is_some()
    }
}
