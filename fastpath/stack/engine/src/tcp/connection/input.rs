//! A segment arrives (RFC 9293, 3.10.7.4).
use super::state::Connection;
use crate::info::TcpState;
use crate::tcp::context::Context;
use crate::tcp::secrets;
use crate::tcp::segment::Segment;
use crate::tcp::sender::Ack;
use crate::tcp::seq::SeqRange;
use crate::wire::tcp::Flags;

impl Connection {
    pub(crate) fn input(&mut self, cx: &mut Context, segment: &Segment) {
        self.totals.segs_in += segments(segment);
        if self.is_predicted(segment) {
            self.take_predicted(cx, segment);
        } else if self.is_acceptable(cx, segment) {
            self.take(cx, segment);
        }
    }

    /// What nearly all segments are: in order, with the window of the one before, in an established connection.
    fn is_predicted(&self, segment: &Segment) -> bool {
        let flags = Flags(segment.flags.0 & !Flags::PSH.0);
        let window = u32::from(segment.window) << self.send.wscale;
        let stamped = match segment.options.timestamps {
            Some(stamps) => self.ts.on && stamps.value.wrapping_sub(self.ts.recent) as i32 >= 0,
            None => !self.ts.on,
        };
        flags == Flags::ACK
            && self.state == TcpState::Established
            && segment.seq == self.receive.next
            && window == self.send.window
            && stamped
            && segment.ack.from(self.sender.snd_una())
            && segment.ack.until(self.sender.snd_nxt())
            && segment.payload.len() as u32 <= self.receive_window()
            && window > 0
    }

    /// Neither window, nor state, nor validity can have changed.
    fn take_predicted(&mut self, cx: &mut Context, segment: &Segment) {
        self.update_recent_timestamp(cx.now, segment);
        if segment.payload.is_empty() {
            cx.counters.pure_acks += 1;
        } else {
            self.totals.data_segs_in += segments(segment);
        }
        let news = segment.ack != self.sender.snd_una()
            || segment.payload.is_empty()
            || !segment.options.sack.as_slice().is_empty();
        self.send.wl1 = segment.seq;
        self.heard(cx);
        if news {
            self.hand_to_sender(cx, segment, false);
        }
        if !segment.payload.is_empty() {
            self.take_data(cx, segment);
        }
    }

    fn take(&mut self, cx: &mut Context, segment: &Segment) {
        if !segment.flags.ack() || !self.take_ack(cx, segment) {
            return;
        }
        self.fin_acknowledged(cx);
        if self.state == TcpState::Closed || self.time_wait {
            return;
        }
        if segment.len() > 0 {
            self.totals.data_segs_in += segments(segment);
            self.take_text(cx, segment);
        }
    }

    /// RFC 9293, 3.10.7.4, fifth. False: the segment is dropped.
    fn take_ack(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        let una = self.sender.snd_una();
        if segment.ack.after(self.sender.snd_nxt()) {
            // Something not yet sent: answered, dropped.
            self.challenge(cx);
            return false;
        }
        if segment.ack.before(una) {
            // RFC 5961, 5.2: older than any window was.
            let acked = self.totals.bytes_acked.min(u64::from(u32::MAX >> 2)) as u32;
            let oldest = una - self.send.max_window.min(acked);
            if segment.ack.before(oldest) {
                self.challenge(cx);
                return false;
            }
            self.update_recent_timestamp(cx.now, segment);
            // Overtaken by a later one; its SACKs may still be news (Linux tcp_ack, old_ack).
            if self.sack && !segment.options.sack.as_slice().is_empty() {
                self.hand_to_sender(cx, segment, false);
            }
            return true;
        }
        self.update_recent_timestamp(cx.now, segment);
        self.heard(cx);
        // A FIN takes a sequence number (Linux tcp_ack).
        if segment.end() == segment.seq {
            cx.counters.pure_acks += 1;
        }
        let window = u32::from(segment.window) << self.send.wscale;
        let updates = self.updates_window(segment, window);
        let changes = updates && window != self.send.window;
        if updates {
            self.send.wl1 = segment.seq;
            self.set_send_window(cx.now, window);
        }
        self.hand_to_sender(cx, segment, changes);
        true
    }

    /// The peer lives.
    fn heard(&mut self, cx: &Context) {
        self.last_ack_received = cx.now;
        self.probes.out = 0;
        self.soft_error = None;
    }

    fn set_send_window(&mut self, now: crate::Ns, window: u32) {
        self.send.window = window;
        if window > self.send.max_window {
            self.send.max_window = window;
            self.sync_mss(now, false);
        }
    }

    fn hand_to_sender(&mut self, cx: &mut Context, segment: &Segment, changes_window: bool) {
        let mut sack = [SeqRange::default(); 4];
        let mut blocks = 0;
        if self.sack {
            for (place, (left, right)) in sack.iter_mut().zip(segment.options.sack.as_slice()) {
                *place = SeqRange::new(crate::tcp::seq::Seq(*left), crate::tcp::seq::Seq(*right));
                blocks += 1;
            }
        }
        let stamps = segment.timestamps().filter(|_| self.ts.on);
        let ts_echo = stamps
            .filter(|s| s.echo != 0)
            .and_then(|s| secrets::timestamp_age(cx.now, self.ts.offset, s.echo));
        let usable = self.send_edge().since(self.sender.snd_nxt()).max(0) as u32;
        let ack = Ack {
            ack: segment.ack,
            sack: &sack[..blocks],
            ts_echo,
            carries_data: segment.len() > 0,
            changes_window,
            unsent_bytes: self.unsent_bytes().min(usable),
        };
        let outcome = self.sender.acknowledged(cx.now, &ack, cx.counters);
        self.send.hold = false;
        if outcome.acked_bytes > 0 {
            self.acknowledged(cx, outcome.acked_bytes);
        }
        self.window_probe_answered(cx.now);
    }

    /// Bytes left the send buffer.
    fn acknowledged(&mut self, cx: &mut Context, bytes: u32) {
        self.totals.bytes_acked += u64::from(bytes);
        self.send.buffer.release(cx.pool, bytes as usize);
        self.probes.backoff = 0;
        self.note_limit(cx.now);
        self.grow_send_buffer(cx);
        if self.send.no_space && self.is_writable() {
            self.send.no_space = false;
            self.event = true;
        }
    }

    /// Linux tcp_sndbuf_expand.
    fn grow_send_buffer(&mut self, cx: &Context) {
        if self.options.send_buffer.is_some() || cx.pool.is_under_pressure() {
            return;
        }
        let wanted = self.sender.wanted_buffer_bytes();
        if wanted > self.send.limit {
            self.send.limit = wanted.min(cx.config.send_buffer.max).max(self.send.limit);
        }
    }
}

/// Of how many segments the device made this one.
fn segments(segment: &Segment) -> u32 {
    let each = segment.segment_bytes.max(1);
    (segment.payload.len() as u32).div_ceil(each).max(1)
}
