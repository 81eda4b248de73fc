//! What the kernel programs count: `enum count` of `bpf/contract.h`, in this order.
use super::SpliceError;
use hopscope_bpf::per_cpu;
use libbpf_rs::MapCore;
use std::fmt;

/// One of the kernel programs' counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    DirectMessages,
    DirectBytes,
    TcpMessages,
    TcpBytes,
    TcpNoPeerYet,
    TcpPressure,
    TcpUnread,
    TcpStopped,
    TcpPeerGone,
    TcpMemory,
    TcpReader,
    TcpLeaving,
    TcpShared,
    ToTcp,
    ToDirect,
    Connections,
    EndsJoined,
    EndsLeft,
    ServerOutside,
    ClientOutside,
    Full,
    Refused,
    MapError,
    OtherUser,
    Blocking,
    Undecided,
    Options,
    Calls,
    ReleasedBlocking,
    ReleasedUnlike,
    ReleasedBulk,
    ReleasedOtherUser,
    ReleasedRefused,
    ReleasedCalls,
    ClosedUnread,
    ResetUnread,
    SharedByThreads,
    Verified,
    VerifiedBytes,
    Mismatched,
    UnverifiedUnread,
    UnverifiedUnseen,
    UnverifiedTogether,
    UnverifiedUnreadable,
    UnverifiedEarly,
    UnverifiedFull,
    VerifiedOpen,
    UnverifiedOpen,
    EndsOpen,
    Paired,
    UnpairedSlower,
    UnpairedOther,
    MasksChanged,
}

impl Count {
    pub const ALL: [Count; 53] = [
        Count::DirectMessages,
        Count::DirectBytes,
        Count::TcpMessages,
        Count::TcpBytes,
        Count::TcpNoPeerYet,
        Count::TcpPressure,
        Count::TcpUnread,
        Count::TcpStopped,
        Count::TcpPeerGone,
        Count::TcpMemory,
        Count::TcpReader,
        Count::TcpLeaving,
        Count::TcpShared,
        Count::ToTcp,
        Count::ToDirect,
        Count::Connections,
        Count::EndsJoined,
        Count::EndsLeft,
        Count::ServerOutside,
        Count::ClientOutside,
        Count::Full,
        Count::Refused,
        Count::MapError,
        Count::OtherUser,
        Count::Blocking,
        Count::Undecided,
        Count::Options,
        Count::Calls,
        Count::ReleasedBlocking,
        Count::ReleasedUnlike,
        Count::ReleasedBulk,
        Count::ReleasedOtherUser,
        Count::ReleasedRefused,
        Count::ReleasedCalls,
        Count::ClosedUnread,
        Count::ResetUnread,
        Count::SharedByThreads,
        Count::Verified,
        Count::VerifiedBytes,
        Count::Mismatched,
        Count::UnverifiedUnread,
        Count::UnverifiedUnseen,
        Count::UnverifiedTogether,
        Count::UnverifiedUnreadable,
        Count::UnverifiedEarly,
        Count::UnverifiedFull,
        Count::VerifiedOpen,
        Count::UnverifiedOpen,
        Count::EndsOpen,
        Count::Paired,
        Count::UnpairedSlower,
        Count::UnpairedOther,
        Count::MasksChanged,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Count::DirectMessages => "direct_messages",
            Count::DirectBytes => "direct_bytes",
            Count::TcpMessages => "tcp_messages",
            Count::TcpBytes => "tcp_bytes",
            Count::TcpNoPeerYet => "tcp_no_peer_yet",
            Count::TcpPressure => "tcp_pressure",
            Count::TcpUnread => "tcp_unread",
            Count::TcpStopped => "tcp_stopped",
            Count::TcpPeerGone => "tcp_peer_gone",
            Count::TcpMemory => "tcp_memory",
            Count::TcpReader => "tcp_reader_options",
            Count::TcpLeaving => "tcp_leaving",
            Count::TcpShared => "tcp_shared",
            Count::ToTcp => "switches_to_tcp",
            Count::ToDirect => "switches_to_direct",
            Count::Connections => "connections",
            Count::EndsJoined => "ends_joined",
            Count::EndsLeft => "ends_left",
            Count::ServerOutside => "plain_server_outside",
            Count::ClientOutside => "plain_client_outside",
            Count::Full => "plain_full",
            Count::Refused => "plain_refused",
            Count::MapError => "plain_map_error",
            Count::OtherUser => "plain_other_user",
            Count::Blocking => "plain_blocking",
            Count::Undecided => "plain_undecided",
            Count::Options => "plain_options",
            Count::Calls => "plain_calls",
            Count::ReleasedBlocking => "released_blocking",
            Count::ReleasedUnlike => "released_options",
            Count::ReleasedBulk => "released_one_way",
            Count::ReleasedOtherUser => "released_other_user",
            Count::ReleasedRefused => "released_refused",
            Count::ReleasedCalls => "released_calls",
            Count::ClosedUnread => "closed_unread",
            Count::ResetUnread => "reset_unread",
            Count::SharedByThreads => "shared_by_threads",
            Count::Verified => "verified_directions",
            Count::VerifiedBytes => "verified_bytes",
            Count::Mismatched => "mismatched_directions",
            Count::UnverifiedUnread => "unverified_unread",
            Count::UnverifiedUnseen => "unverified_unseen",
            Count::UnverifiedTogether => "unverified_together",
            Count::UnverifiedUnreadable => "unverified_unreadable",
            Count::UnverifiedEarly => "unverified_early",
            Count::UnverifiedFull => "unverified_full",
            Count::VerifiedOpen => "verified_open",
            Count::UnverifiedOpen => "unverified_open",
            Count::EndsOpen => "ends_open",
            Count::Paired => "pairs_placed",
            Count::UnpairedSlower => "pairs_undone_slower",
            Count::UnpairedOther => "pairs_undone",
            Count::MasksChanged => "pair_masks_changed",
        }
    }

    pub const fn what(self) -> &'static str {
        match self {
            Count::DirectMessages => "messages redirected into the other end's receive queue",
            Count::DirectBytes => "their bytes",
            Count::TcpMessages => "messages of redirected sockets that took TCP",
            Count::TcpBytes => "their bytes",
            Count::TcpNoPeerYet => "because the other end was not established yet",
            Count::TcpPressure => "because the receiver had too much unread",
            Count::TcpUnread => "because earlier bytes were still in flight in TCP",
            Count::TcpStopped => "because the accelerator was stopping",
            Count::TcpPeerGone => "because an end was closed, shut down, reset or disconnected",
            Count::TcpMemory => "because the receiver was near a limit of its memory",
            Count::TcpReader => "because the receiver has set SO_RCVLOWAT or TCP_INQ",
            Count::TcpLeaving => "because the connection was being released",
            Count::TcpShared => {
                "because a send was long, and other threads or processes may send there, too"
            }
            Count::ToTcp => "times a direction switched to TCP",
            Count::ToDirect => "times a direction switched to redirection, the first included",
            Count::Connections => "connections with both ends accelerated",
            Count::EndsJoined => "sockets that joined",
            Count::EndsLeft => "accelerated sockets that were closed or released",
            Count::ServerOutside => "clients whose server takes no part: plain TCP",
            Count::ClientOutside => {
                "servers' ends whose client takes no part, or was changed on the way: plain TCP"
            }
            Count::Full => "sockets for which there was no room: plain TCP",
            Count::Refused => "sockets of programs that bugs of this kernel would break: plain TCP",
            Count::MapError => "sockets that the kernel refused to put into the sockmap: plain TCP",
            Count::OtherUser => "connections between two users: plain TCP (--across-users)",
            Count::Blocking => {
                "connections of which an end may wait in recv: plain TCP (--blocking)"
            }
            Count::Undecided => {
                "connections closed before both ends were seen to receive without waiting: plain TCP"
            }
            Count::Options => {
                "connections with an option that redirected bytes do not keep to: plain TCP"
            }
            Count::Calls => {
                "connections with a call that redirected bytes do not keep to: plain TCP"
            }
            Count::ReleasedBlocking => {
                "connections released because an end may wait in recv: plain TCP from then on"
            }
            Count::ReleasedUnlike => {
                "connections released for an option that redirected bytes do not keep to"
            }
            Count::ReleasedBulk => "connections released because bytes went only one way",
            Count::ReleasedOtherUser => "connections released because an end changed its user",
            Count::ReleasedRefused => {
                "connections released because a program takes no part any more"
            }
            Count::ReleasedCalls => {
                "connections released for a call that redirected bytes do not keep to"
            }
            Count::ClosedUnread => {
                "ends closed with redirected bytes unread or on their way, where TCP resets the connection"
            }
            Count::ResetUnread => "of these, ends whose connection was reset",
            Count::SharedByThreads => {
                "sockets on which one thread sent while another waited: its recv may fail with EAGAIN"
            }
            Count::Verified => {
                "directions of which all that was sent was received, and is the same"
            }
            Count::VerifiedBytes => "their bytes",
            Count::Mismatched => "directions in which OTHER BYTES ARRIVED",
            Count::UnverifiedUnread => "not compared: closed before everything was read",
            Count::UnverifiedUnseen => {
                "not compared: bytes went by calls that are not watched (io_uring, sendfile, splice)"
            }
            Count::UnverifiedTogether => {
                "not compared: several threads sent, or received, at the same time"
            }
            Count::UnverifiedUnreadable => {
                "not compared: the program's memory could not be read, or over 256 MiB went in one call"
            }
            Count::UnverifiedEarly => {
                "not compared: a call began before the connection was accelerated"
            }
            Count::UnverifiedFull => "not compared: no memory to keep sums",
            Count::VerifiedOpen => "directions of connections still open, of which the same",
            Count::UnverifiedOpen => "not compared: still open, with bytes on their way",
            Count::EndsOpen => "accelerated sockets that were not closed at the end",
            Count::Paired => "times that both threads of a connection were placed on one processor",
            Count::UnpairedSlower => {
                "times that this was undone because both were ready to run, or it was no faster"
            }
            Count::UnpairedOther => {
                "times that it was undone for another reason: the connection's end, other work, nothing to do"
            }
            Count::MasksChanged => "threads that had set another affinity meanwhile, and keep it",
        }
    }
}

/// Sums over all processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Default for Counts {
    fn default() -> Counts {
        Counts([0; Count::ALL.len()])
    }
}

impl Counts {
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// What only user space knows.
    pub(super) fn add(&mut self, count: Count, more: u64) {
        self.0[count as usize] += more;
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Count, u64)> {
        Count::ALL.into_iter().map(|count| (count, self.get(count)))
    }
}

/// Totals, and every reason that there was.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} connections; {} messages ({} bytes) redirected, {} ({} bytes) over TCP",
            self.get(Count::Connections),
            self.get(Count::DirectMessages),
            self.get(Count::DirectBytes),
            self.get(Count::TcpMessages),
            self.get(Count::TcpBytes)
        )?;
        for (count, value) in self.iter().skip(Count::TcpBytes as usize + 1) {
            if value > 0 {
                writeln!(f, "  {:<21} {value:>12}  {}", count.name(), count.what())?;
            }
        }
        Ok(())
    }
}

impl serde::Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(count, value)| (count.name(), value)))
    }
}

pub(super) fn of_map(map: &impl MapCore) -> Result<Counts, SpliceError> {
    Ok(Counts(per_cpu::sums(map)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_at_its_place() {
        for (at, count) in Count::ALL.into_iter().enumerate() {
            assert_eq!(count as usize, at, "{}", count.name());
        }
    }
}
