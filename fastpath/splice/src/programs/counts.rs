//! What the kernel programs count: `enum count` of `bpf/contract.h`, in this order.
use super::SpliceError;
use hopscope_bpf::per_cpu;
use libbpf_rs::MapCore;
use std::fmt;

macro_rules! counts {
    ($($variant:ident $name:literal $what:literal),* $(,)?) => {
        /// One of the kernel programs' counters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Count {
            $(#[doc = $what] $variant),*
        }

        impl Count {
            pub const ALL: [Count; [$($name),*].len()] = [$(Count::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Count::$variant => $name),* }
            }

            pub const fn what(self) -> &'static str {
                match self { $(Count::$variant => $what),* }
            }
        }
    };
}

counts! {
    DirectMessages "direct_messages" "messages redirected into the other end's receive queue",
    DirectBytes "direct_bytes" "their bytes",
    TcpMessages "tcp_messages" "messages of redirected sockets that took TCP",
    TcpBytes "tcp_bytes" "their bytes",
    TcpNoPeerYet "tcp_no_peer_yet" "because the other end was not established yet",
    TcpPressure "tcp_pressure" "because the receiver had too much unread",
    TcpUnread "tcp_unread" "because earlier bytes were still in flight in TCP",
    TcpStopped "tcp_stopped" "because the accelerator was stopping",
    TcpPeerGone "tcp_peer_gone" "because an end was closed, shut down, reset or disconnected",
    TcpMemory "tcp_memory" "because the receiver was near a limit of its memory",
    TcpReader "tcp_reader_options" "because the receiver has set SO_RCVLOWAT or TCP_INQ",
    TcpLeaving "tcp_leaving" "because the connection was being released",
    TcpShared "tcp_shared" "because a send was long, and other threads or processes may send there, too",
    ToTcp "switches_to_tcp" "times a direction switched to TCP",
    ToDirect "switches_to_direct" "times a direction switched to redirection, the first included",
    Connections "connections" "connections with both ends accelerated",
    EndsJoined "ends_joined" "sockets that joined",
    EndsLeft "ends_left" "accelerated sockets that were closed or released",
    ServerOutside "plain_server_outside" "clients whose server takes no part: plain TCP",
    ClientOutside "plain_client_outside" "servers' ends whose client takes no part, or was changed on the way: plain TCP",
    Full "plain_full" "connections for which there was no room: plain TCP",
    Refused "plain_refused" "sockets of programs that bugs of this kernel would break: plain TCP",
    MapError "plain_map_error" "sockets that the kernel refused to put into the sockmap: plain TCP",
    OtherUser "plain_other_user" "connections between two users: plain TCP (--across-users)",
    Blocking "plain_blocking" "connections of which an end may wait in recv: plain TCP (--blocking)",
    Undecided "plain_undecided" "connections closed before both ends were seen to receive without waiting: plain TCP",
    Options "plain_options" "connections with an option that redirected bytes do not keep to: plain TCP",
    Calls "plain_calls" "connections with a call that redirected bytes do not keep to: plain TCP",
    ReleasedBlocking "released_blocking" "connections released because an end may wait in recv: plain TCP from then on",
    ReleasedUnlike "released_options" "connections released for an option that redirected bytes do not keep to",
    ReleasedBulk "released_one_way" "connections released because bytes went only one way",
    ReleasedOtherUser "released_other_user" "connections released because an end changed its user",
    ReleasedRefused "released_refused" "connections released because a program takes no part any more",
    ReleasedCalls "released_calls" "connections released for a call that redirected bytes do not keep to",
    UrgentMisread "urgent_misread" "bytes of the stream that a receive with MSG_OOB TOOK in place of the urgent byte",
    Gathered "gathered" "ends whose reader, which peeks, was shown what came by TCP behind redirected bytes",
    ClosedUnread "closed_unread" "ends closed with redirected bytes unread or on their way, where TCP resets the connection",
    ResetUnread "reset_unread" "of these, ends whose connection was reset",
    SharedByThreads "shared_by_threads" "sockets on which one thread sent while another waited: its recv may fail with EAGAIN",
    Verified "verified_directions" "directions of which all that was sent was received, and is the same",
    VerifiedBytes "verified_bytes" "their bytes",
    Mismatched "mismatched_directions" "directions in which OTHER BYTES ARRIVED",
    UnverifiedUnread "unverified_unread" "not compared: closed before everything was read",
    UnverifiedUnseen "unverified_unseen" "not compared: bytes went by calls that are not watched (io_uring, sendfile, splice), or another accelerator redirects it",
    UnverifiedTogether "unverified_together" "not compared: several threads sent, or received, at the same time",
    UnverifiedUnreadable "unverified_unreadable" "not compared: the program's memory could not be read, or over 256 MiB went in one call",
    UnverifiedEarly "unverified_early" "not compared: a call began before the connection was accelerated",
    UnverifiedFull "unverified_full" "not compared: no memory to keep sums",
    VerifiedOpen "verified_open" "directions of connections still open, of which the same",
    UnverifiedOpen "unverified_open" "not compared: still open, with bytes on their way",
    EndsOpen "ends_open" "accelerated sockets that were not closed at the end",
    Paired "pairs_placed" "times that both threads of a connection were placed on one processor",
    UnpairedSlower "pairs_undone_slower" "times that this was undone because both were ready to run, or it was no faster",
    UnpairedOther "pairs_undone" "times that it was undone for another reason: the connection's end, other work, nothing to do",
    MasksChanged "pair_masks_changed" "threads that had set another affinity meanwhile, and keep it",
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
