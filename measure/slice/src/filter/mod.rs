//! Filter expressions in tcpdump's language: compiled by libpcap itself, run here over a packet's
//! bytes, or translated into a block of a BPF program.
mod classic;
mod ebpf;
mod embed;
mod error;
mod flow;
mod libpcap;
mod position;
mod protocols;
mod run;
mod translate;

pub use embed::{FILLER, PlaceError, pad, place, place_in_object};
pub use error::FilterError;
pub use translate::{REACH, Scratch};

use run::Fault;
use std::ffi::CString;
use std::ops::Range;

/// What a packet's bytes begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The IPv4 or IPv6 header (`DLT_RAW`).
    Network,
    /// An Ethernet header (`DLT_EN10MB`).
    Ethernet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Match,
    NoMatch,
    /// Not known: the filter asked for bytes that the packet had and that are not there.
    CutOff,
}

/// A compiled expression.
///
/// ```
/// use hopscope_slice::filter::{Filter, Link};
/// let filter = Filter::compile("ip and len = 20", Link::Network)?;
/// let mut packet = [0; 20];
/// packet[0] = 0x45;
/// assert!(filter.matches(&packet, 20));
/// assert!(!filter.matches(&packet, 21));
/// # Ok::<(), hopscope_slice::filter::FilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    link: Link,
    program: classic::Program,
}

impl Filter {
    /// An empty expression matches every packet. Names of hosts, ports and protocols are looked up
    /// where it runs.
    ///
    /// # Errors
    /// What libpcap does not accept for this `link`, with the place in the expression; what needs
    /// more than the packet's bytes (`inbound`), or a loop (`protochain`).
    pub fn compile(expression: &str, link: Link) -> Result<Self, FilterError> {
        let linktype = match link {
            Link::Network => libpcap::DLT_RAW,
            Link::Ethernet => libpcap::DLT_EN10MB,
        };
        let text = CString::new(expression).map_err(|nul| FilterError::Nul {
            at: nul.nul_position(),
        })?;
        let insns = libpcap::compile(&text, linktype).map_err(|said| FilterError::Refused {
            at: position::of(expression, linktype, &said),
            said,
        })?;
        // libpcap takes these for a link header of no bytes, and would read the network header.
        if link == Link::Network
            && let Some(at) = position::of_link_bytes(expression)
        {
            return Err(FilterError::LinkBytes { at });
        }
        let program = classic::Program::new(&insns)?;
        Ok(Self { link, program })
    }

    /// `packet` begins as `link` said and may be cut off; `wire_len` is its length uncut, from the
    /// same byte.
    pub fn verdict(&self, packet: &[u8], wire_len: u32) -> Verdict {
        self.verdict_with_gaps(packet, &[], wire_len)
    }

    /// As [`Filter::verdict`], where the bytes of `packet` in `gaps` are not known either.
    pub fn verdict_with_gaps(
        &self,
        packet: &[u8],
        gaps: &[Range<usize>],
        wire_len: u32,
    ) -> Verdict {
        let cut = (wire_len as usize) > packet.len();
        match run::run(&self.program, packet, gaps, wire_len) {
            Ok(0) | Err(Fault::DivisionByZero) => Verdict::NoMatch,
            Ok(_) => Verdict::Match,
            Err(Fault::Gap) => Verdict::CutOff,
            Err(Fault::Short) if cut => Verdict::CutOff,
            Err(Fault::Short) => Verdict::NoMatch,
        }
    }

    /// As tcpdump does, which takes what is cut off as no match.
    pub fn matches(&self, packet: &[u8], wire_len: u32) -> bool {
        self.verdict(packet, wire_len) == Verdict::Match
    }

    /// Whether every packet that may match names TCP in its network header, in IPv6 without headers in between.
    /// `false` may be wrong.
    pub fn takes_only_tcp(&self) -> bool {
        self.link == Link::Network && protocols::only_tcp(&self.program)
    }

    /// The filter as a block of a BPF program, one instruction a word (RFC 9669); `pad`, `place` and
    /// `place_in_object` give it its length.
    ///
    /// On entry r1 points to the copied bytes of the packet from its network header (a map value of at
    /// least `REACH` bytes), r2 is how many there are (0 to `REACH`), r3 the packet's length on the wire
    /// from its network header. r0 to r5 are overwritten, r6 to r9 are not touched. The block is left at
    /// its end, with
    /// - r0: 0 no match, anything else a match;
    /// - r1: 1 when r0 is 0 only because the filter asked for a byte that the packet has and that was not
    ///   copied, else 0.
    ///
    /// # Errors
    /// When it is longer than `max_insns`, reads at a constant offset beyond the `REACH` bytes that the
    /// kernel program copies, or is for packets with a link header.
    pub fn to_ebpf(&self, max_insns: usize, scratch: Scratch) -> Result<Vec<u64>, FilterError> {
        match self.link {
            Link::Network => translate::translate(&self.program, max_insns, scratch),
            Link::Ethernet => Err(FilterError::LinkHeader),
        }
    }
}

#[cfg(test)]
mod tests;
