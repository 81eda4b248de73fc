//! What a measured call costs, in TSC ticks: what reports take out of the times.
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// What a probe pair costs on this machine, measured at the start of the recording on a program of
/// the recorder's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCost {
    /// What an empty body reads between its own entry and exit stamp (lowest, median, highest).
    pub bias_ticks: [u64; 3],
    /// What one measured call adds to its caller (lowest, median, highest).
    pub pair_ticks: [u64; 3],
    /// How long before its body is done a call's exit may read the clock, which does not wait for the body on some
    /// processors; 0: on this it waits.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead_ticks: u64,
    /// `None`: not measured. In place a call may then cost anything up to the time that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bound: Option<MemoryBoundCost>,
    /// Of calls whose entry has the stamp of the exit before it; `None`: there are none, or it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fused: Option<FusedCost>,
    /// `None`: not measured in the program itself. In a file it is the `cost` chunk that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<InPlaceCost>,
}

/// All of it lies between the call's own stamps: those of the exit before it and of its own. So it is at once what the call reads
/// too long, and what it adds to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FusedCost {
    /// Lowest (nothing: what a body waits for may hide it), mean, highest.
    // Its name while the bias was another number, in files of 2026-11-29.
    #[serde(alias = "pair_ticks")]
    pub call_ticks: [u64; 3],
}

/// The same where the stamps end the overlap of cache misses: each `rdtsc` waits for those before
/// it, and those behind it wait for `rdtsc`. Highest tenth of loops in which each call misses once, and four times in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBoundCost {
    pub bias_ticks: u64,
    pub pair_ticks: u64,
}

fn is_zero(ticks: &u64) -> bool {
    *ticks == 0
}

impl ProbeCost {
    /// Measured in a loop of calls only.
    pub const fn in_a_loop(bias_ticks: [u64; 3], pair_ticks: [u64; 3]) -> ProbeCost {
        ProbeCost {
            bias_ticks,
            pair_ticks,
            ahead_ticks: 0,
            memory_bound: None,
            fused: None,
            in_place: None,
        }
    }

    /// What corrected times take out: bias and pair, as measured in place where that is known. Which part
    /// of it lies between the stamps of a call is known of the loop only.
    pub fn taken_out(&self) -> (u64, u64) {
        let (bias, pair) = (self.bias_ticks[1], self.pair_ticks[1]);
        match self.in_place {
            Some(InPlaceCost { call_ticks, .. }) => {
                let part = u128::from(bias) * u128::from(call_ticks[1]) / u128::from(pair.max(1));
                ((part as u64).min(call_ticks[1]), call_ticks[1])
            }
            None => (bias, pair),
        }
    }
}

/// What a measured call adds to its thread, from windows of the program with probes and without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InPlaceCost {
    /// Mean of all calls: lowest, median, highest of what the windows allow.
    pub call_ticks: [u64; 3],
    /// Pairs of windows.
    pub pairs: u32,
    /// Calls of functions whose probes cannot be switched off, of a thousand.
    pub not_switched_per_mille: u32,
}

/// How the cost was measured in place, and the result: the `cost` chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostCheckEntry {
    pub in_place: Option<InPlaceCost>,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Length of a window, half of them with probes.
    pub window_ns: u64,
    /// What calls cost while their probes are off, in a loop (lowest, median, highest); part of the above.
    pub off_ticks: [u64; 3],
    /// Whose probes cannot be switched off.
    pub functions_not_switched: u64,
}
