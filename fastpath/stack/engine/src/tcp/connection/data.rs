//! Segment text and FIN (RFC 9293, 3.10.7.4, seventh and eighth).
use super::state::Connection;
use crate::SocketError;
use crate::info::TcpState;
use crate::tcp::context::Context;
use crate::tcp::replies::{self, Reply};
use crate::tcp::secrets;
use crate::tcp::segment::Segment;
use crate::tcp::seq::{Seq, SeqRange};
use crate::wire::tcp::{Flags, Header};

impl Connection {
    /// By state: who closed cannot read any more, and the peer has to know that its data is lost (RFC 1122, 4.2.2.13).
    pub(crate) fn take_text(&mut self, cx: &mut Context, segment: &Segment) {
        let data_end = segment.end() - u32::from(segment.flags.fin());
        match self.state {
            TcpState::CloseWait | TcpState::Closing | TcpState::LastAck => {
                // After FIN nothing can come but copies.
                self.acknowledge_duplicate(cx, segment);
                return;
            }
            TcpState::FinWait1 | TcpState::FinWait2
                if self.shut_read
                    && !segment.payload.is_empty()
                    && data_end.after(self.receive.next) =>
            {
                cx.counters.abort_on_data += 1;
                cx.reply(replies::reset_of(&self.tuple, segment));
                self.fail(cx, SocketError::Reset);
                return;
            }
            _ => {}
        }
        self.take_data(cx, segment);
    }

    /// What lies in the window is stored, whatever its order.
    pub(crate) fn take_data(&mut self, cx: &mut Context, segment: &Segment) {
        let next = self.receive.next;
        let window = self.receive_window();
        let edge = next + window;
        if segment.end().until(next) {
            self.out_of_window(cx, segment);
            return;
        }
        // Some send FIN alone into a closed window.
        let bare_fin = segment.payload.is_empty() && segment.seq == next;
        if (segment.seq.from(edge) || window == 0) && !bare_fin {
            if window == 0 {
                cx.counters.zero_window_drop += 1;
            }
            self.out_of_window(cx, segment);
            return;
        }
        if segment.seq.before(next) {
            self.tell_duplicate(cx, SeqRange::new(segment.seq, next), true);
        }
        if segment.flags.fin() && self.receive.fin.is_none() {
            self.receive.fin = Some(segment.end() - 1);
        }
        self.store(cx, segment, edge);
        self.consume_fin(cx);
        self.schedule_ack(cx);
    }

    fn store(&mut self, cx: &mut Context, segment: &Segment, edge: Seq) {
        let next = self.receive.next;
        let start = segment.data_start().later(next);
        let mut end = (segment.data_start() + segment.payload.len() as u32).earlier(edge);
        if let Some(fin) = self.receive.fin {
            end = end.earlier(fin);
        }
        if !start.before(end) {
            self.ack.scheduled = true;
            self.ack.now |= start.after(next);
            return;
        }
        let from = (start - segment.data_start()) as usize;
        let bytes = &segment.payload[from..from + (end - start) as usize];
        let had_holes = self.receive.buffer.has_out_of_order();
        let written = self.receive.buffer.write(cx.pool, start - next, bytes);
        cx.count_pressures();
        if written.refused > 0 {
            cx.counters.rcvq_drop += 1;
            cx.counters.memory_limit_drop += 1;
            self.make_room(cx);
        }
        self.data_came(cx, segment, written.stored);
        if written.advanced > 0 {
            self.receive.next += written.advanced;
            self.totals.bytes_received += u64::from(written.advanced);
            if had_holes {
                self.receive.sacks.advance(self.receive.next);
                // RFC 5681, 4.2: at once where a hole is filled.
                self.ack.now = true;
            }
            self.data_ready();
        }
        if let Some((left, right)) = written.range.filter(|_| written.refused == 0) {
            cx.counters.ofo_queue += u64::from(written.stored > 0);
            self.totals.out_of_order += u32::from(written.stored > 0);
            self.receive
                .sacks
                .add(SeqRange::new(next + left, next + right));
            self.ack.now = true;
        }
        cx.counters.ofo_merge += u64::from(written.merged);
        if let Some((left, right)) = written.duplicate {
            self.tell_duplicate(cx, SeqRange::new(next + left, next + right), false);
        }
        self.ack.now |= written.refused > 0;
    }

    /// Without memory: what lies beyond holes goes first, which RFC 2018, 8 allows (Linux tcp_prune_ofo_queue).
    fn make_room(&mut self, cx: &mut Context) {
        if self.receive.buffer.prune(cx.pool) > 0 {
            cx.counters.ofo_drop += 1;
            self.receive.sacks.clear();
        }
    }

    fn data_came(&mut self, cx: &mut Context, segment: &Segment, stored: u32) {
        let size = segment.payload.len() as u32;
        let space = &mut self.receive.space;
        match segment.timestamps().filter(|_| self.ts.on) {
            None => space.measure_rtt(cx.now, self.receive.next, self.receive.window),
            Some(stamps) if segment.segment_bytes >= self.ack.rcv_mss && stamps.echo != 0 => {
                let offset = self.ts.offset;
                if let Some(made) = secrets::timestamp_age(cx.now, offset, stamps.echo) {
                    space.measure_rtt_by_echo(cx.now, stamps.echo, made);
                }
            }
            Some(_) => {}
        }
        self.ack.measure(size, segment.segment_bytes, space.advmss);
        let rto = self.sender.rto();
        self.ack
            .data_came(cx.now, self.receive.window, rto, cx.config);
        if stored >= 128 && !cx.pool.is_under_pressure() {
            let unread = self.receive.buffer.readable() as u32;
            space.grow_window(stored, unread);
        }
    }

    /// The reader has something, if it is as much as SO_RCVLOWAT wants.
    fn data_ready(&mut self) {
        let readable = self.receive.buffer.readable() as u32;
        self.event |= readable
            >= self
                .options
                .receive_low_water
                .min(self.receive.space.limit / 2);
    }

    fn out_of_window(&mut self, cx: &mut Context, segment: &Segment) {
        let end = segment.end().earlier(self.receive.next);
        self.tell_duplicate(cx, SeqRange::new(segment.seq, end), true);
        self.ack.enter_quick(self.receive.window, cx.config);
        self.ack.now = true;
    }

    /// FIN counts once all before it is there.
    fn consume_fin(&mut self, cx: &mut Context) {
        if self.receive.fin != Some(self.receive.next) || self.done {
            return;
        }
        self.receive.next += 1;
        self.shut_read = true;
        self.done = true;
        self.receive.sacks.clear();
        self.ack.scheduled = true;
        self.event = true;
        match self.state {
            TcpState::Established => {
                self.state = TcpState::CloseWait;
                self.ack.ping_pong = true;
                // RFC 9293, 3.10.7.4, eighth.
                self.ack.now = true;
            }
            TcpState::FinWait1 => {
                self.state = TcpState::Closing;
                self.ack.now = true;
            }
            TcpState::FinWait2 => {
                self.ack.now = true;
                self.enter_time_wait(cx);
            }
            _ => {}
        }
    }

    /// At once or later: Linux __tcp_ack_snd_check.
    fn schedule_ack(&mut self, cx: &mut Context) {
        if !self.ack.scheduled || self.ack.now {
            return;
        }
        let unacknowledged = self.receive.next - self.receive.wup;
        let two_segments = unacknowledged > self.ack.rcv_mss && self.window_would_open(cx);
        if two_segments || self.ack.is_quick() || self.receive.buffer.has_out_of_order() {
            self.ack.now = true;
            return;
        }
        if self.ack.delay(cx.now, self.sender.srtt(), cx.config) {
            self.ack.now = true;
        }
    }

    /// The application is behind when the window would close by this acknowledgement: then it comes with its reading.
    fn window_would_open(&mut self, cx: &Context) -> bool {
        let readable = self.receive.buffer.readable() as u32;
        readable < self.options.receive_low_water || self.new_window(cx) >= self.receive.window
    }

    /// FIN of ours was acknowledged: the states that wait for it go on.
    pub(crate) fn fin_acknowledged(&mut self, cx: &mut Context) {
        if !self.fin_is_acknowledged() {
            return;
        }
        match self.state {
            TcpState::FinWait1 => {
                self.state = TcpState::FinWait2;
                self.shut_write = true;
                self.event = true;
                if self.orphan && !self.wait_for_fin(cx) {
                    cx.counters.abort_on_data += 1;
                }
            }
            TcpState::Closing => self.enter_time_wait(cx),
            TcpState::LastAck => self.finish(),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, cx: &mut Context) {
        if self.ack.now {
            // The connection's output ends with it.
            let seq = self.sender.snd_nxt();
            let header = self.header(cx, seq, Flags::ACK);
            self.reply(cx, header);
        }
        self.state = TcpState::TimeWait;
        self.time_wait = true;
        self.send.buffer.clear(cx.pool);
    }

    fn reply(&self, cx: &mut Context, header: Header) {
        cx.reply(Reply {
            tuple: self.tuple,
            header,
            hop_limit: self.options.header.hop_limit(self.tuple.peer.into()),
            traffic_class: self.options.header.traffic_class(self.tuple.peer.into()),
        });
    }

    /// With the next number that the peer expects, so that it is believed (RFC 5961, 3.2).
    pub(crate) fn send_reset(&mut self, cx: &mut Context) {
        let seq = self
            .sender
            .snd_nxt()
            .earlier(self.send_edge().later(self.sender.snd_una()));
        let flags = Flags::RST.and(Flags::ACK);
        let mut header = replies::header(&self.tuple, seq, self.receive.next, flags);
        header.options.timestamps = self.stamps(cx.now);
        self.reply(cx, header);
    }
}
