//! All that is known of a connection, by who uses it.
use super::delayed_ack::DelayedAck;
use super::limited::Limited;
use super::sacks::Sacks;
use super::space::ReceiveSpace;
use crate::buffer::{ReceiveBuffer, SendBuffer};
use crate::info::TcpState;
use crate::ip::Hop;
use crate::tcp::challenge::InvalidLimit;
use crate::tcp::options::SocketOptions;
use crate::tcp::secrets;
use crate::tcp::sender::Sender;
use crate::tcp::seq::{Seq, SeqRange};
use crate::tcp::tuple::Tuple;
use crate::{Ns, SocketError};

/// What is to be sent, and the peer's window for it. snd_una and snd_nxt are the sender's.
#[derive(Debug)]
pub(crate) struct Send {
    pub(crate) buffer: SendBuffer,
    /// After the last byte that was written.
    pub(crate) end: Seq,
    /// FIN follows the last byte.
    pub(crate) fin: bool,
    /// MSG_MORE was with the last bytes: no PSH for them.
    pub(crate) more: bool,
    /// And they wait to become a whole segment: until the next call or ACK, as in Linux, whose sendmsg alone knows of MSG_MORE.
    pub(crate) hold: bool,
    /// A partial segment goes out although Nagle or CORK hold it back: its time is over.
    pub(crate) force: bool,
    /// The writer was told, or saw, that there is little room.
    pub(crate) no_space: bool,
    /// snd_wnd in bytes, and the sequence number of the segment that it came with (RFC 9293, 3.10.7.4).
    pub(crate) window: u32,
    pub(crate) wl1: Seq,
    pub(crate) max_window: u32,
    pub(crate) wscale: u8,
    /// The end of the last segment below MSS (snd_sml), for Minshall's variant of Nagle.
    pub(crate) small: Seq,
    /// Of the buffer, in bytes; while there is little memory, and else `u32::MAX`.
    pub(crate) limit: u32,
    pub(crate) pressed_limit: u32,
    /// In the engine's queue of those that wait for any memory.
    pub(crate) starved: bool,
    /// What the peer's option allows, before options of ours.
    pub(crate) peer_mss: u16,
}

/// What came, and how much more may.
#[derive(Debug)]
pub(crate) struct Receive {
    pub(crate) buffer: ReceiveBuffer,
    pub(crate) next: Seq,
    /// rcv_wnd as it was advertised, and rcv_nxt at that time.
    pub(crate) window: u32,
    pub(crate) wup: Seq,
    pub(crate) wscale: u8,
    /// Where the stream ends, once FIN came: its own number.
    pub(crate) fin: Option<Seq>,
    pub(crate) sacks: Sacks,
    pub(crate) space: ReceiveSpace,
}

/// RFC 7323.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timestamps {
    pub(crate) on: bool,
    pub(crate) offset: u32,
    pub(crate) recent: u32,
    pub(crate) recent_at: Ns,
}

/// Zero-window and keep-alive probes (RFC 9293, 3.8.6.1, 3.8.4).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probes {
    /// Sent without an answer.
    pub(crate) out: u8,
    pub(crate) backoff: u8,
    /// When the first of them was sent.
    pub(crate) since: Option<Ns>,
    pub(crate) window_deadline: Option<Ns>,
    pub(crate) keep_alive_deadline: Option<Ns>,
    /// One is to be sent.
    pub(crate) pending: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) bytes_received: u64,
    pub(crate) bytes_acked: u64,
    pub(crate) segs_in: u32,
    pub(crate) segs_out: u32,
    pub(crate) data_segs_in: u32,
    pub(crate) out_of_order: u32,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) tuple: Tuple,
    pub(crate) hash: u32,
    pub(crate) state: TcpState,
    /// Closed by its owner (Linux SOCK_DEAD): nobody reads, writes, or gets events.
    pub(crate) orphan: bool,
    /// The same of who sends, where what was written is still being handed on.
    pub(crate) abandoned: bool,
    /// A reset follows what can go out now.
    pub(crate) reset_behind: bool,
    /// Counted in the engine's orphans.
    pub(crate) counted: bool,
    pub(crate) shut_read: bool,
    pub(crate) shut_write: bool,
    /// The peer's FIN came (Linux SOCK_DONE).
    pub(crate) done: bool,
    /// Something happened that epoll reports.
    pub(crate) event: bool,
    /// The connection is in TIME-WAIT from now on, without a socket.
    pub(crate) time_wait: bool,
    /// In the engine's queue of those that have something to send.
    pub(crate) queued: bool,
    /// In the demultiplexing table.
    pub(crate) attached: bool,
    /// Counted in CurrEstab.
    pub(crate) established: bool,
    /// connect(2) has not told yet that it succeeded.
    pub(crate) connect_pending: bool,
    pub(crate) sack: bool,
    /// IP packets of the path, in bytes.
    pub(crate) mtu: u16,
    pub(crate) error: Option<SocketError>,
    pub(crate) soft_error: Option<SocketError>,
    pub(crate) sender: Sender,
    pub(crate) send: Send,
    pub(crate) receive: Receive,
    pub(crate) ack: DelayedAck,
    pub(crate) ts: Timestamps,
    pub(crate) probes: Probes,
    /// What [`crate::tcp::sender::TimerAction::Probe`] wanted.
    pub(crate) tail: Option<SeqRange>,
    pub(crate) invalid: InvalidLimit,
    pub(crate) fin_wait_deadline: Option<Ns>,
    /// When the engine's timer for it expires; later than what is due never, earlier at times.
    pub(crate) armed: Ns,
    pub(crate) last_ack_received: Ns,
    pub(crate) last_data_sent: Ns,
    pub(crate) totals: Totals,
    pub(crate) limited: Limited,
    pub(crate) options: SocketOptions,
    /// Where the peer is reached, as the interface found last.
    pub(crate) hop: Hop,
}

/// No timer is armed.
pub(crate) const NEVER: Ns = Ns(u64::MAX);

impl Connection {
    /// Bytes of the window that are not used up (Linux tcp_receive_window).
    pub(crate) fn receive_window(&self) -> u32 {
        let edge = self.receive.wup + self.receive.window;
        edge.since(self.receive.next).max(0) as u32
    }

    /// One after what may be sent according to the peer's window.
    pub(crate) fn send_edge(&self) -> Seq {
        self.sender.snd_una() + self.send.window
    }

    /// Sequence numbers that were never sent, FIN among them.
    pub(crate) fn unsent(&self) -> u32 {
        let end = self.send.end + u32::from(self.send.fin);
        end.since(self.sender.snd_nxt()).max(0) as u32
    }

    pub(crate) fn unsent_bytes(&self) -> u32 {
        self.send.end.since(self.sender.snd_nxt()).max(0) as u32
    }

    pub(crate) fn fin_is_acknowledged(&self) -> bool {
        self.send.fin && self.sender.snd_una() == self.send.end + 1
    }

    /// Bytes of options in each segment, SACK aside.
    pub(crate) fn option_bytes(&self) -> u32 {
        if self.ts.on { 12 } else { 0 }
    }

    pub(crate) fn timestamp(&self, now: Ns) -> u32 {
        secrets::timestamp(now, self.ts.offset)
    }
}
