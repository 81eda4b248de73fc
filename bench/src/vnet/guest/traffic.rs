//! What is sent, which way, and in what order.
use super::device::address;
use crate::vnet::load::{Load, Servers};

/// Where a sink and an echo server listen in the guest.
pub(super) const SINK: u16 = 7100;
pub(super) const ECHO: u16 = 7101;
/// Datagrams a second, where they come evenly.
pub(super) const STEADY: Load = Load::Steady(6000);
pub(super) const LARGE: u32 = 32768;
/// iperf3's, of which the prototype's figures are.
const LARGER: u32 = 131_072;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Traffic {
    pub(super) load: Load,
    /// The client is on this machine, by whose clock it measures; the guest answers.
    pub(super) into: bool,
}

pub(super) const fn out(load: Load) -> Traffic {
    Traffic { load, into: false }
}

pub(super) const fn into(load: Load) -> Traffic {
    Traffic { load, into: true }
}

pub(super) const OUT_LARGE: Traffic = out(Load::Stream(LARGE));
pub(super) const INTO_LARGE: Traffic = into(Load::Stream(LARGE));
pub(super) const RR: Traffic = into(Load::Rr);
pub(super) const PING: Traffic = into(Load::Ping(56));
pub(super) const DATAGRAMS: Traffic = out(STEADY);

pub(super) fn all(quick: bool, offload: bool) -> Vec<Traffic> {
    let small = [out(Load::Stream(64)), into(Load::Stream(64))];
    let more = [OUT_LARGE, INTO_LARGE, RR, into(Load::Crr)];
    let single = [
        out(Load::Stream(1460)),
        out(Load::Stream(LARGER)),
        into(Load::Stream(LARGER)),
        DATAGRAMS,
        PING,
    ];
    match (quick, offload) {
        (true, false) => vec![OUT_LARGE, INTO_LARGE, RR, DATAGRAMS],
        (true, true) => vec![INTO_LARGE, RR],
        (false, false) => [&small[..], &more, &single].concat(),
        (false, true) => [&small[..], &more].concat(),
    }
}

/// Those of a round, each time another one first.
pub(super) fn order(policies: &[usize], round: usize) -> impl Iterator<Item = usize> {
    let count = policies.len();
    (0..count).map(move |at| policies[(at + round) % count])
}

impl Traffic {
    pub(super) fn name(self) -> String {
        let way = match (self.load, self.into) {
            (Load::Stream(_), true) => " in",
            (Load::Stream(_), false) => " out",
            _ => "",
        };
        format!("{}{way}", self.load.name())
    }

    /// What the client is told, for device `n`.
    pub(super) fn client(self, servers: &Servers, n: usize, milliseconds: u64) -> Vec<String> {
        let guest = address(n, 2);
        let at = |port: u16| format!("{guest}:{port}");
        let (words, size, to) = match (self.load, self.into) {
            (Load::Stream(size), true) => ("tcp stream", size, at(SINK)),
            (Load::Rr, true) => ("tcp rr --closed", 1, at(ECHO)),
            (Load::Crr, true) => ("tcp crr --closed", 1, at(ECHO)),
            (_, true) => return self.load.client(servers, &guest, milliseconds),
            (_, false) => return self.load.client(servers, &address(n, 1), milliseconds),
        };
        self.load.words(words, size, to, milliseconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_each_place_once() {
        let policies = [0, 2, 3, 7];
        for place in 0..policies.len() {
            let rounds = 0..policies.len();
            let mut there: Vec<usize> = rounds
                .filter_map(|round| order(&policies, round).nth(place))
                .collect();
            there.sort_unstable();
            assert_eq!(there, policies);
        }
    }

    #[test]
    fn names_tell_loads_apart() {
        for (quick, offload) in [(true, false), (true, true), (false, false), (false, true)] {
            let mut names: Vec<String> = all(quick, offload).iter().map(|t| t.name()).collect();
            let before = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), before, "{names:?}");
        }
    }
}
