//! A generated packet and the run that handled it.
use crate::run::RunIx;
use hopscope_event::{Stamp, StreamIx};
use std::fmt;

/// One row of the stamps, joined to the run that handled the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    pub stream: StreamIx,
    pub stamp: Stamp,
    /// `None` exactly when `matched` is [`Match::None`].
    pub run: Option<RunIx>,
    pub matched: Match,
}

/// How a packet was matched with its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Match {
    /// The run captured this packet's sequence number.
    Sequence,
    /// By order and time. So many runs are possible, the chosen one included; 1 is no ambiguity.
    Order {
        ambiguous_among: u32,
    },
    None(NoMatch),
}

/// Why a packet has no run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoMatch {
    /// It never arrived; where it was lost is not known.
    NeverCameBack,
    /// A further arrival of a packet that is listed already.
    Duplicate,
    /// It was under way before the first or after the last run, so nothing of it is recorded.
    OutsideRecording,
    /// It arrived although no run took place while it was under way: it took another path.
    NoRunMeanwhile,
    /// Runs carry sequence numbers, and none carries this one.
    SequenceNotCaptured,
    /// Another packet with the same sequence number was handled by the same run.
    SequenceAmbiguous,
    /// Records were lost while it was under way: its run may be among them.
    RecordsLost,
    /// Without stamps: it was captured at the first of two places and not at the second.
    NotSeenAgain,
}

impl NoMatch {
    pub const ALL: [NoMatch; 8] = [
        NoMatch::NeverCameBack,
        NoMatch::Duplicate,
        NoMatch::OutsideRecording,
        NoMatch::NoRunMeanwhile,
        NoMatch::SequenceNotCaptured,
        NoMatch::SequenceAmbiguous,
        NoMatch::RecordsLost,
        NoMatch::NotSeenAgain,
    ];

    /// Name for programs.
    pub fn name(self) -> &'static str {
        match self {
            NoMatch::NeverCameBack => "never_came_back",
            NoMatch::Duplicate => "duplicate",
            NoMatch::OutsideRecording => "outside_recording",
            NoMatch::NoRunMeanwhile => "no_run_meanwhile",
            NoMatch::SequenceNotCaptured => "sequence_not_captured",
            NoMatch::SequenceAmbiguous => "sequence_ambiguous",
            NoMatch::RecordsLost => "records_lost",
            NoMatch::NotSeenAgain => "not_seen_again",
        }
    }
}

impl fmt::Display for NoMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoMatch::NeverCameBack => "never came back; where they were lost is not known",
            NoMatch::Duplicate => "are further arrivals of packets that are listed already",
            NoMatch::OutsideRecording => "were under way before the first or after the last run",
            NoMatch::NoRunMeanwhile => {
                "arrived although no run took place while they were under way"
            }
            NoMatch::SequenceNotCaptured => "have a sequence number that no run captured",
            NoMatch::SequenceAmbiguous => {
                "have the sequence number of another packet that the same run handled"
            }
            NoMatch::RecordsLost => "were under way while records were lost",
            NoMatch::NotSeenAgain => {
                "passed the first place and were not seen at the second: dropped, still under way \
                 at the end, or lost with records"
            }
        })
    }
}
