//! The kernel's own counters of this network namespace: the failures a socket never sees.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// `/proc/net/snmp` and `/proc/net/netstat`: pairs of lines, names then values, with a common prefix.
/// Of the connections of the whole namespace, not only ours.
const WATCHED: &[&str] = &[
    // A finished handshake that found the accept queue full: dropped, the client sends again.
    "TcpExt.ListenOverflows",
    // The same and every other reason why a SYN or the last ACK of a handshake was dropped.
    "TcpExt.ListenDrops",
    "TcpExt.TCPReqQFullDrop",
    "TcpExt.TCPReqQFullDoCookies",
    "TcpExt.TCPTimeouts",
    "TcpExt.TCPSynRetrans",
    "TcpExt.TCPLostRetransmit",
    "TcpExt.TCPTimeWaitOverflow",
    "TcpExt.TCPAbortOnMemory",
    "Tcp.RetransSegs",
    "Tcp.AttemptFails",
    "Tcp.OutRsts",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp.InErrors",
    "Udp.NoPorts",
];

/// Values or differences of the watched counters, by `PROTOCOL.NAME` as the kernel spells them.
/// One that this kernel does not have is missing, not 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KernelCounters(pub BTreeMap<String, u64>);

impl KernelCounters {
    /// As they are now in the network namespace of this thread.
    ///
    /// # Errors
    /// Where `/proc` is not mounted or hides its `net`.
    pub fn now() -> io::Result<KernelCounters> {
        let mut values = BTreeMap::new();
        for name in ["snmp", "netstat"] {
            let path = Path::new("/proc/thread-self/net").join(name);
            values.extend(parse(&std::fs::read_to_string(path)?));
        }
        Ok(KernelCounters(values))
    }

    /// What was added since `before`.
    pub fn since(&self, before: &KernelCounters) -> KernelCounters {
        let grown = |(name, now): (&String, &u64)| {
            let then = before.0.get(name)?;
            Some((name.clone(), now.saturating_sub(*then)))
        };
        KernelCounters(self.0.iter().filter_map(grown).collect())
    }

    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// `ListenOverflows 12, TCPTimeouts 3`: those that are not 0; empty where all are.
    pub fn text(&self) -> String {
        let seen = self.0.iter().filter(|(_, value)| **value > 0);
        let words: Vec<String> = seen
            .map(|(name, value)| format!("{} {value}", name.split('.').next_back().unwrap_or(name)))
            .collect();
        words.join(", ")
    }
}

fn parse(text: &str) -> BTreeMap<String, u64> {
    let mut values = BTreeMap::new();
    let mut lines = text.lines();
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let prefix = names.split(':').next().unwrap_or("");
        let pairs = names.split_whitespace().zip(numbers.split_whitespace());
        for (name, number) in pairs.skip(1) {
            let name = format!("{prefix}.{name}");
            // Some are signed (`Tcp.MaxConn` is -1); none of the watched are.
            if let (true, Ok(number)) = (WATCHED.contains(&name.as_str()), number.parse()) {
                values.insert(name, number);
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "Tcp: MaxConn RetransSegs InErrs\nTcp: -1 10 0\n\
        TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 1 5\n";
    const AFTER: &str = "Tcp: MaxConn RetransSegs InErrs\nTcp: -1 13 0\n\
        TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 1 5\n";

    #[test]
    fn differences_of_what_is_there() {
        let [before, after] = [BEFORE, AFTER].map(|text| KernelCounters(parse(text)));
        let grown = after.since(&before);
        assert_eq!(grown.get("Tcp.RetransSegs"), Some(3));
        assert_eq!(grown.get("TcpExt.ListenOverflows"), Some(0));
        assert_eq!(grown.get("TcpExt.TCPTimeouts"), None);
        assert_eq!(grown.text(), "RetransSegs 3");
    }

    #[test]
    fn this_kernel_has_the_listen_counters() {
        let now = KernelCounters::now().expect("/proc is mounted");
        for name in [
            "TcpExt.ListenOverflows",
            "TcpExt.ListenDrops",
            "TcpExt.TCPTimeouts",
        ] {
            assert!(now.get(name).is_some(), "{name} of {now:?}");
        }
    }
}
