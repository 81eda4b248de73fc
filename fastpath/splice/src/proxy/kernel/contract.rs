//! What the programs are told and tell: `bpf/proxy.h`.
use crate::kernel_counts::kernel_counts;
use crate::proxy::share::Share;

/// Of `struct proxy_config`.
pub(super) const CONFIG_BYTES: usize = 8;
/// Of `struct proxy_way`.
pub(super) const WAY_BYTES: usize = 80;
const REDIRECTED_AT: usize = 0;
const PASSED_AT: usize = 8;
const PEER_AT: usize = 16;
const IS_DOWN_AT: usize = 40;
/// Of `struct proxy_question`.
pub(super) const QUESTION_BYTES: usize = 64;
pub(super) const QUESTION_COOKIE_AT: usize = 16;
pub(super) const QUESTION_SENT_AT: usize = 24;
/// `enum proxy_answer`
pub(super) const PENDING: u32 = 1;

/// `enum proxy_event_kind`, of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) enum Notice {
    /// What comes from now on is user space's.
    User { cookie: u64 },
    /// Too much is unread; bytes were dropped.
    Over { cookie: u64 },
    /// User space has caught up: the kernel has it again.
    Kernel { cookie: u64 },
    /// Much lies there that its sender is not charged for.
    HoldBack { cookie: u64 },
}

impl Notice {
    pub(super) fn read(bytes: &[u8]) -> Option<Notice> {
        let cookie = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
        match u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?) {
            1 => Some(Notice::User { cookie }),
            2 => Some(Notice::Over { cookie }),
            3 => Some(Notice::Kernel { cookie }),
            4 => Some(Notice::HoldBack { cookie }),
            _ => None,
        }
    }
}

/// An eighth of the limit may wait for TCP.
pub(super) fn config(limit: u32) -> [u8; CONFIG_BYTES] {
    let mut bytes = [0; CONFIG_BYTES];
    // Their distance must stay below half of what sequence numbers can tell apart.
    bytes[0..4].copy_from_slice(&(limit / 8).to_ne_bytes());
    bytes[4..8].copy_from_slice(&limit.to_ne_bytes());
    bytes
}

pub(super) fn way(peer: u64, is_down: bool) -> [u8; WAY_BYTES] {
    let mut bytes = [0; WAY_BYTES];
    bytes[PEER_AT..][..8].copy_from_slice(&peer.to_ne_bytes());
    bytes[IS_DOWN_AT..][..4].copy_from_slice(&u32::from(is_down).to_ne_bytes());
    bytes
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok());
    u64::from_ne_bytes(word.unwrap_or_default())
}

pub(super) fn redirected(way: &[u8]) -> u64 {
    word(way, REDIRECTED_AT)
}

pub(super) fn passed(way: &[u8]) -> u64 {
    word(way, PASSED_AT)
}

/// `struct proxy_progress`
pub(super) fn progress(share: &Share) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&share.received.to_ne_bytes());
    bytes[8..].copy_from_slice(&share.sent.to_ne_bytes());
    bytes
}

kernel_counts! {
    /// `enum proxy_counter`, in its order.
    pub struct KernelCounts {
        /// Redirected, from the client to the upstream and back.
        bytes_up,
        bytes_down,
        /// Left to user space.
        passed_bytes,
        /// Directions that went to user space because TCP takes no more: their reader is slower.
        reader_is_slow,
        /// Went there because the other direction did.
        with_the_other,
        /// And because the other socket was gone.
        redirect_failed,
        /// Directions that came back from user space.
        back_to_kernel,
        /// Senders whose window was closed because what they sent was charged to nobody.
        sender_held_back,
        /// Directions of which more was unread than may be.
        over_limit,
        /// Runs without a record.
        no_record,
        /// Notices to user space that found no room; their connections are reset.
        events_lost,
        verdicts,
        /// That were not taken because too much lay there which nobody is charged for; their sender sends them again.
        segments_refused,
        /// Packets that began with bytes that had come before: a part that was sent again.
        overlaps,
        /// Urgent bytes (MSG_OOB), which were left out of the stream, as TCP's readers find it.
        urgent_left_out,
        /// That could not be taken out, for want of memory: they were forwarded in the stream.
        urgent_in_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_has_its_peer_and_direction_where_the_programs_read_them() {
        let bytes = way(0x0102_0304_0506_0708, true);
        assert_eq!(word(&bytes, PEER_AT), 0x0102_0304_0506_0708);
        assert_eq!(bytes[IS_DOWN_AT], 1);
        assert_eq!((redirected(&bytes), passed(&bytes)), (0, 0));
    }

    #[test]
    fn notices_are_told_apart() {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&7u64.to_ne_bytes());
        for (kind, notice) in [
            (0u32, None),
            (1, Some(Notice::User { cookie: 7 })),
            (2, Some(Notice::Over { cookie: 7 })),
            (3, Some(Notice::Kernel { cookie: 7 })),
            (4, Some(Notice::HoldBack { cookie: 7 })),
            (5, None),
        ] {
            bytes[8..12].copy_from_slice(&kind.to_ne_bytes());
            assert_eq!(Notice::read(&bytes), notice);
        }
    }
}
