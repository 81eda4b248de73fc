//! The window that the next segment advertises (RFC 9293, 3.8.6.2.2), and sizes of segments.
use super::state::Connection;
use crate::Ns;
use crate::tcp::context::Context;

/// Headers of IP and TCP without options, in bytes.
const HEADERS_V4: u32 = 40;
const HEADERS_V6: u32 = 60;
/// The least MSS that a small window or a lie about the path can make (Linux tcp_min_snd_mss, RFC 9293, 3.7.1).
const MIN_MSS: u32 = 48;

pub(crate) fn mss_of_mtu(mtu: u16, v4: bool) -> u32 {
    let headers = if v4 { HEADERS_V4 } else { HEADERS_V6 };
    u32::from(mtu).saturating_sub(headers).max(MIN_MSS)
}

/// Payload bytes of a segment: what path and peer allow, less options. Of a window that no full segment fits, half (RFC 9293,
/// 3.8.6.2.1, rule 3).
pub(crate) fn effective_mss(
    mtu: u16,
    v4: bool,
    peer_mss: u16,
    option_bytes: u32,
    max_window: u32,
) -> u32 {
    let mss = mss_of_mtu(mtu, v4).min(u32::from(peer_mss).max(MIN_MSS));
    let full = mss.saturating_sub(option_bytes);
    let bound = if max_window > 0 && max_window < full {
        (max_window / 2).max(MIN_MSS) + option_bytes
    } else {
        mss
    };
    bound.saturating_sub(option_bytes).max(MIN_MSS - 12)
}

impl Connection {
    /// `lost`: segments of the old size were dropped.
    pub(crate) fn sync_mss(&mut self, now: Ns, lost: bool) {
        let v4 = self.tuple.peer.is_v4();
        let mss = effective_mss(
            self.mtu,
            v4,
            self.send.peer_mss,
            self.option_bytes(),
            self.send.max_window,
        );
        if mss != self.sender.mss() {
            self.sender.set_mss(now, mss, lost);
        }
    }

    /// What could be advertised now.
    pub(crate) fn new_window(&mut self, cx: &Context) -> u32 {
        let unread = self.receive.buffer.readable() as u32;
        let pressure = cx.pool.is_under_pressure();
        let (window, scale) = (self.receive.window, self.receive.wscale);
        let space = &mut self.receive.space;
        space.window(unread, window, self.ack.rcv_mss, scale, pressure)
    }

    /// Never less than what was promised (RFC 9293, 3.8.6); the header's field.
    pub(crate) fn select_window(&mut self, cx: &mut Context) -> u16 {
        let old = self.receive.window;
        let scale = self.receive.wscale;
        let current = self.receive_window();
        let mut new = self.new_window(cx);
        if new < current {
            if new == 0 {
                cx.counters.want_zero_window_adv += 1;
            }
            new = current.div_ceil(1 << scale) << scale;
        }
        new = new.min(65_535 << scale);
        self.receive.window = new;
        self.receive.wup = self.receive.next;
        match (old, new) {
            (0, 1..) => cx.counters.from_zero_window_adv += 1,
            (1.., 0) => cx.counters.to_zero_window_adv += 1,
            _ => {}
        }
        (new >> scale) as u16
    }

    /// The application read: tell the peer where that opens the window much (Linux tcp_cleanup_rbuf).
    pub(crate) fn after_read(&mut self, cx: &mut Context, copied: usize) {
        let unacknowledged = self.receive.next - self.receive.wup;
        let emptied = copied > 0 && self.receive.buffer.readable() == 0;
        if self.ack.after_read(unacknowledged, emptied) {
            self.ack.now = true;
            return;
        }
        if copied == 0 || self.shut_read {
            return;
        }
        let current = self.receive_window();
        if u64::from(current) * 2 <= u64::from(self.receive.space.clamp) {
            let new = self.new_window(cx);
            self.ack.now |= new > 0 && u64::from(new) >= 2 * u64::from(current);
        }
    }
}
