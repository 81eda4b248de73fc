//! Whether a segment is one of this connection: PAWS (RFC 7323, 5), sequence numbers (RFC 9293, 3.10.7.4), and what a blind attacker
//! could try with RST and SYN (RFC 5961).
use super::state::Connection;
use crate::Ns;
use crate::SocketError;
use crate::info::TcpState;
use crate::tcp::context::Context;
use crate::tcp::segment::Segment;
use crate::tcp::seq::SeqRange;

/// How long ts_recent is valid: 24 days, before it could wrap (RFC 7323, 5.5).
const PAWS_LIFETIME: Ns = Ns::from_ms(24 * 86_400_000);

impl Connection {
    /// False: the segment was dealt with.
    pub(crate) fn is_acceptable(&mut self, cx: &mut Context, segment: &Segment) -> bool {
        let flags = segment.flags;
        if self.fails_paws(cx.now, segment) && !flags.rst() {
            cx.counters.paws_estab += 1;
            if flags.syn() {
                self.challenge_syn(cx);
            } else if self.may_answer_invalid(cx, segment) {
                self.acknowledge_duplicate(cx, segment);
            } else {
                cx.counters.ack_skipped_paws += 1;
            }
            return false;
        }
        if !self.is_in_window(segment) {
            self.reject_sequence(cx, segment);
            return false;
        }
        if flags.rst() {
            self.reset_arrives(cx, segment);
            return false;
        }
        if flags.syn() {
            self.challenge_syn(cx);
            return false;
        }
        true
    }

    fn is_in_window(&self, segment: &Segment) -> bool {
        let edge = self.receive.next + self.receive_window();
        segment.end().from(self.receive.wup) && segment.seq.until(edge)
    }

    fn reject_sequence(&mut self, cx: &mut Context, segment: &Segment) {
        if segment.flags.rst() {
            if self.is_reset_after_fin(segment) {
                self.reset_by_peer(cx);
            }
        } else if segment.flags.syn() {
            self.challenge_syn(cx);
        } else if self.may_answer_invalid(cx, segment) {
            self.acknowledge_duplicate(cx, segment);
        } else {
            cx.counters.ack_skipped_seq += 1;
        }
    }

    /// RFC 5961, 3.2: exactly the next expected number, or after a FIN the one before it. With SACK also the end of what came beyond
    /// a hole, which a peer that was reset may use.
    fn reset_arrives(&mut self, cx: &mut Context, segment: &Segment) {
        let exact = segment.seq == self.receive.next
            || self.is_reset_after_fin(segment)
            || self.receive.sacks.highest() == Some(segment.seq);
        if exact {
            self.reset_by_peer(cx);
        } else {
            self.challenge(cx);
        }
    }

    fn is_reset_after_fin(&self, segment: &Segment) -> bool {
        let after_fin = matches!(
            self.state,
            TcpState::CloseWait | TcpState::LastAck | TcpState::Closing
        );
        after_fin && segment.seq + 1 == self.receive.next
    }

    /// RFC 5961, 4.2.
    fn challenge_syn(&mut self, cx: &mut Context) {
        cx.counters.syn_challenge += 1;
        self.challenge(cx);
    }

    pub(crate) fn challenge(&mut self, cx: &mut Context) {
        if !self.invalid.allows(cx.now, cx.config.invalid_ack_interval) {
            cx.counters.ack_skipped_challenge += 1;
        } else if cx.challenges.allows(cx.now) {
            cx.counters.challenge_ack += 1;
            self.ack.now = true;
        }
    }

    fn may_answer_invalid(&mut self, cx: &Context, segment: &Segment) -> bool {
        segment.is_answered_always() || self.invalid.allows(cx.now, cx.config.invalid_ack_interval)
    }

    /// What came is old: probably our acknowledgement was lost.
    pub(crate) fn acknowledge_duplicate(&mut self, cx: &mut Context, segment: &Segment) {
        if segment.len() > 0 && segment.seq.before(self.receive.next) {
            self.ack.enter_quick(self.receive.window, cx.config);
            let end = segment.end().earlier(self.receive.next);
            self.tell_duplicate(cx, SeqRange::new(segment.seq, end), true);
        }
        self.ack.now = true;
    }

    /// DSACK: `old`: all of it was acknowledged; else it lies beyond a hole.
    pub(crate) fn tell_duplicate(&mut self, cx: &mut Context, range: SeqRange, old: bool) {
        if !self.sack || !range.is_ordered() {
            return;
        }
        if old {
            cx.counters.dsack_old_sent += 1;
        } else {
            cx.counters.dsack_ofo_sent += 1;
        }
        self.receive.sacks.set_duplicate(range);
    }

    /// RFC 7323, 5.3, R1. A stamp that is one tick old may come from reordering within the tick.
    fn fails_paws(&self, now: Ns, segment: &Segment) -> bool {
        let Some(stamps) = segment.timestamps().filter(|_| self.ts.on) else {
            return false;
        };
        let behind = self.ts.recent.wrapping_sub(stamps.value) as i32;
        behind > 1
            && self.ts.recent != 0
            && now.since(self.ts.recent_at) < PAWS_LIFETIME
            && !self.is_reordered_ack(segment, behind)
    }

    /// An ACK without news that was overtaken is no old duplicate of an earlier connection (Linux tcp_disordered_ack).
    fn is_reordered_ack(&self, segment: &Segment, behind: i32) -> bool {
        let window = u32::from(segment.window) << self.send.wscale;
        segment.flags.ack()
            && segment.len() == 0
            && segment.seq == self.receive.next
            && segment.ack == self.sender.snd_una()
            && !self.updates_window(segment, window)
            && i64::from(behind) <= (self.sender.rto().0 / 1_000_000) as i64 * 12 / 10
    }

    /// RFC 7323, 4.3: of segments that begin at or before what was acknowledged last.
    pub(crate) fn update_recent_timestamp(&mut self, now: Ns, segment: &Segment) {
        let Some(stamps) = segment.timestamps().filter(|_| self.ts.on) else {
            return;
        };
        let newer = stamps.value.wrapping_sub(self.ts.recent) as i32 >= 0;
        let expired = now.since(self.ts.recent_at) >= PAWS_LIFETIME;
        if segment.seq.until(self.receive.wup) && (newer || expired) {
            self.ts.recent = stamps.value;
            self.ts.recent_at = now;
        }
    }

    /// RFC 9293, 3.10.7.4: newer than the segment that the window came with; or as new, and larger.
    pub(crate) fn updates_window(&self, segment: &Segment, window: u32) -> bool {
        segment.ack.after(self.sender.snd_una())
            || segment.seq.after(self.send.wl1)
            || segment.seq == self.send.wl1 && (window > self.send.window || window == 0)
    }

    pub(crate) fn reset_by_peer(&mut self, cx: &mut Context) {
        if matches!(self.state, TcpState::Established | TcpState::CloseWait) {
            cx.counters.tcp_estab_resets += 1;
        }
        let error = match self.state {
            TcpState::CloseWait => SocketError::BrokenPipe,
            _ => SocketError::Reset,
        };
        self.fail(cx, error);
    }
}
