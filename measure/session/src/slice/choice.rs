//! Which packets of a recording are asked for.
use super::headers::{self, Headers};
use crate::error::Result;
use hopscope_analyze::slice::{Connections, Span};
use hopscope_event::slice::{SliceRecord, Sliced};
use hopscope_slice::filter::{Filter, Link, Verdict};
use std::time::Duration;

#[derive(Default)]
pub struct PacketChoice {
    filter: Option<Filter>,
    pid: Vec<u32>,
    comm: Option<String>,
    connections: Connections,
    min_latency_ns: Option<u64>,
    unknown: u64,
}

impl PacketChoice {
    /// # Errors
    /// The expression is not understood.
    pub fn new(
        expression: &str,
        pid: &[u32],
        comm: Option<&str>,
        min_latency: Option<Duration>,
    ) -> Result<PacketChoice> {
        let filter = if expression.is_empty() {
            None
        } else {
            Some(Filter::compile(expression, Link::Network)?)
        };
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Ok(PacketChoice {
            filter,
            pid: pid.to_vec(),
            comm: comm.map(str::to_owned),
            connections: Connections::default(),
            min_latency_ns: min_latency.map(ns),
            unknown: 0,
        })
    }

    /// `whole`: how long the packet took.
    pub fn wants(&mut self, packet: &Sliced, whole: &Span) -> bool {
        // Of every packet: which connections are the process's is told by those that are left out, too.
        let is_its = self.is_of_process(&packet.record);
        let is_slow = self.min_latency_ns.is_none_or(|min| whole.best() >= min);
        is_slow && is_its && self.passes_filter(packet)
    }

    /// Packets left out because the filter asked for what was not recorded of them.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    fn is_of_process(&mut self, record: &SliceRecord) -> bool {
        if self.pid.is_empty() && self.comm.is_none() {
            return true;
        }
        let is_its = self.was_sent_or_read_by_it(record);
        self.connections.has(record, is_its)
    }

    fn was_sent_or_read_by_it(&self, record: &SliceRecord) -> bool {
        let pid = |pid: &u32| [record.tx_tgid, record.rx_tgid].contains(pid);
        let comm = |name: &String| {
            let is = |bytes: &[u8; 16]| {
                let end = bytes.iter().position(|b| *b == 0).unwrap_or(16);
                &bytes[..end] == name.as_bytes()
            };
            is(&record.tx_comm) || is(&record.rx_comm)
        };
        (self.pid.is_empty() || self.pid.iter().any(pid)) && self.comm.as_ref().is_none_or(comm)
    }

    fn passes_filter(&mut self, packet: &Sliced) -> bool {
        let Some(filter) = &self.filter else {
            return true;
        };
        let verdict = match (&packet.bytes, packet.network_bytes()) {
            (Some(bytes), Some(network)) if !network.is_empty() => {
                let link = u32::from(bytes.link_len);
                filter.verdict(network, bytes.original_len.saturating_sub(link))
            }
            // The record has the headers' important fields.
            _ => {
                let Headers { bytes, gaps } = headers::of(&packet.record);
                filter.verdict_with_gaps(&bytes, &gaps, packet.record.ip_len)
            }
        };
        self.unknown += u64::from(verdict == Verdict::CutOff);
        verdict == Verdict::Match
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::slice::sample::{frame, record, without_bytes};

    fn wants(expression: &str, packet: &Sliced) -> (bool, u64) {
        let mut choice = PacketChoice::new(expression, &[], None, None).unwrap();
        let wants = choice.wants(packet, &Span::default());
        (wants, choice.unknown())
    }

    #[test]
    fn a_record_without_bytes_knows_its_addresses_and_flags() {
        let packet = without_bytes(record(1));
        for (expression, expected) in [
            ("tcp port 80", (true, 0)),
            ("udp", (false, 0)),
            ("src host 10.0.0.1 and dst port 80", (true, 0)),
            ("host 10.9.9.9", (false, 0)),
            ("tcp[tcpflags] & tcp-push != 0", (true, 0)),
            ("len = 116", (true, 0)),
            // Neither the time to live nor the data were recorded.
            ("ip[8] = 64", (false, 1)),
            ("tcp[20] = 97", (false, 1)),
        ] {
            assert_eq!(wants(expression, &packet), expected, "{expression}");
        }
    }

    #[test]
    fn captured_bytes_answer_what_the_record_cannot() {
        let record = record(1);
        let mut packet = Sliced {
            record,
            bytes: Some(frame(&record)),
        };
        assert_eq!(wants("tcp[20] = 97 and ip[8] = 64", &packet), (true, 0));
        packet.bytes.as_mut().unwrap().bytes.truncate(14 + 40);
        assert_eq!(wants("tcp[20] = 97", &packet), (false, 1));
        assert_eq!(wants("ip[8] = 64", &packet), (true, 0));
    }

    #[test]
    fn a_process_has_all_packets_of_its_connections() {
        let mut choice = PacketChoice::new("", &[123], None, None).unwrap();
        let mut acknowledgement = record(2);
        (acknowledgement.tx_tgid, acknowledgement.rx_tgid) = (0, 0);
        let mut wants = |record| choice.wants(&without_bytes(record), &Span::default());
        assert!(!wants(acknowledgement));
        assert!(wants(record(1)));
        assert!(wants(acknowledgement));
    }

    #[test]
    fn ipv6_and_udp() {
        let mut six = record(1);
        (six.family, six.protocol) = (6, 17);
        six.source = "fe80::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
        let packet = without_bytes(six);
        assert_eq!(wants("ip6 and udp dst port 80", &packet), (true, 0));
        assert_eq!(wants("src host fe80::1", &packet), (true, 0));
        assert_eq!(wants("tcp", &packet), (false, 0));
    }
}
