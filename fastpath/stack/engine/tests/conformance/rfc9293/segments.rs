//! RFC 9293, 3.10.7 (SEGMENT ARRIVES) as a table, with the answers to blind attacks of RFC 5961.
//!
//! A cell is what the engine sends, then the state it is in afterwards where that is another one:
//! `-` nothing, `A` an ACK of what it has, `R` a reset, `S` SYN-ACK.
//!
//! Linux 6.18 was given the same segments in the same states. It differs where SYN-RECEIVED was opened passively: a SYN in the window ends it with
//! a reset (RFC 9293 returns to LISTEN; here as in synchronized states a challenge ACK, so that a blind SYN ends nothing), and a segment outside
//! the window that does not acknowledge the SYN is answered by a reset, not an ACK. In TIME-WAIT it answers data without ACK, and a SYN+FIN ends it.
use super::states::STATES;
use hopscope_stack_engine::TcpState::{self, *};

/// Sequence numbers of a segment, relative to what the receiver expects.
pub struct Row {
    /// Section of RFC 9293 unless it says otherwise.
    pub section: &'static str,
    pub name: &'static str,
    pub flags: &'static str,
    /// From RCV.NXT.
    pub seq: i64,
    pub length: u32,
    /// From SND.NXT, or from SND.UNA.
    pub ack: Ack,
    pub cells: [(&'static str, Option<TcpState>); STATES.len()],
}

#[derive(Clone, Copy)]
pub enum Ack {
    Una,
    Next(i64),
}

const fn to(state: TcpState) -> Option<TcpState> {
    Some(state)
}

/// Beyond the receive window, whatever scaling makes of it.
const FAR: i64 = 1 << 24;

#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    //                     Closed       Listen              SynSent             SynReceived           Established           FinWait1            FinWait2            Closing             TimeWait             CloseWait           LastAck
    Row { section: "RFC 5961, 3.2", name: "RST at RCV.NXT", flags: "R", seq: 0, length: 0, ack: Ack::Una,
        // In SYN-SENT a reset counts only with an acceptable ACK.
        cells: [("-", None), ("-", None), ("-", None), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed))] },
    Row { section: "3.10.7.3", name: "RST+ACK that acknowledges all", flags: "R.", seq: 0, length: 0, ack: Ack::Next(0),
        cells: [("-", None), ("-", None), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed))] },
    Row { section: "RFC 5961, 3.2", name: "RST inside the window", flags: "R", seq: 1000, length: 0, ack: Ack::Una,
        // A request without a socket and TIME-WAIT answer as they answer any segment at a wrong place, or are silent.
        cells: [("-", None), ("-", None), ("-", None), ("A?", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A?", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.4", name: "RST outside the window", flags: "R", seq: FAR, length: 0, ack: Ack::Una,
        cells: [("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None)] },
    Row { section: "RFC 5961, 4.2", name: "SYN inside the window", flags: "S", seq: 1000, length: 0, ack: Ack::Una,
        // TIME-WAIT: 3.10.7.4, a new incarnation whose number is greater (RFC 1122, 4.2.2.13), where somebody listens.
        cells: [("R", None), ("S", to(SynReceived)), ("S", to(SynReceived)), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("S", to(SynReceived)), ("A", None), ("A", None)] },
    Row { section: "RFC 5961, 4.2", name: "SYN before the window", flags: "S", seq: -3000, length: 0, ack: Ack::Una,
        cells: [("R", None), ("S", to(SynReceived)), ("S", to(SynReceived)), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.3", name: "SYN+ACK that acknowledges all", flags: "S.", seq: 0, length: 0, ack: Ack::Next(0),
        cells: [("R", None), ("R", None), ("A", to(Established)), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.3", name: "SYN+ACK of what was not sent", flags: "S.", seq: 0, length: 0, ack: Ack::Next(1000),
        cells: [("R", None), ("R", None), ("R", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.4", name: "ACK of all", flags: ".", seq: 0, length: 0, ack: Ack::Next(0),
        cells: [("R", None), ("R", None), ("-", None), ("-", to(Established)), ("-", None), ("-", to(FinWait2)), ("-", None), ("-", to(TimeWait)), ("-", None), ("-", None), ("-", to(Closed))] },
    Row { section: "3.10.7.4", name: "ACK of what was not sent", flags: ".", seq: 0, length: 0, ack: Ack::Next(1000),
        cells: [("R", None), ("R", None), ("R", None), ("R", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A?", None), ("A", None), ("A", None)] },
    Row { section: "RFC 5961, 5.2", name: "ACK older than the largest window", flags: ".", seq: 0, length: 0, ack: Ack::Next(-100_000),
        cells: [("R", None), ("R", None), ("R", None), ("R", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A?", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.4", name: "data", flags: "P.", seq: 0, length: 100, ack: Ack::Una,
        // After FIN there is no more data: it is ignored, in TIME-WAIT acknowledged.
        cells: [("R", None), ("R", None), ("R?", None), ("R?", None), ("A", None), ("A", None), ("A", None), ("A?", None), ("A", None), ("A?", None), ("A?", None)] },
    Row { section: "3.10.7.4", name: "data without ACK", flags: "P", seq: 0, length: 100, ack: Ack::Una,
        cells: [("R", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None)] },
    Row { section: "3.10.7.4", name: "data beyond the window", flags: "P.", seq: FAR, length: 100, ack: Ack::Una,
        cells: [("R", None), ("R", None), ("R?", None), ("A?", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.4", name: "data that ends before the window", flags: "P.", seq: -500, length: 100, ack: Ack::Una,
        cells: [("R", None), ("R", None), ("R?", None), ("A?", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.4", name: "FIN", flags: "F.", seq: 0, length: 0, ack: Ack::Una,
        cells: [("R", None), ("R", None), ("R?", None), ("R?", None), ("A", to(CloseWait)), ("A", to(Closing)), ("A", to(TimeWait)), ("A?", None), ("A?", None), ("A?", None), ("A?", None)] },
    Row { section: "3.10.7.4", name: "FIN that acknowledges all", flags: "F.", seq: 0, length: 0, ack: Ack::Next(0),
        cells: [("R", None), ("R", None), ("-", None), ("A", to(CloseWait)), ("A", to(CloseWait)), ("A", to(TimeWait)), ("A", to(TimeWait)), ("A?", to(TimeWait)), ("A?", None), ("A?", None), ("-", to(Closed))] },
    Row { section: "3.10.7.4", name: "FIN, retransmitted", flags: "F.", seq: -1, length: 0, ack: Ack::Una,
        // In states before FIN was received this is one byte before the window.
        cells: [("R", None), ("R", None), ("R?", None), ("A?", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7", name: "no flags", flags: "-", seq: 0, length: 0, ack: Ack::Una,
        cells: [("R", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None), ("-", None)] },
    Row { section: "3.10.7.2", name: "SYN+FIN", flags: "SF", seq: 1000, length: 0, ack: Ack::Una,
        // LISTEN: dropped as Linux does; no stack sends it.
        cells: [("R", None), ("-", None), ("S", to(SynReceived)), ("A", None), ("A", None), ("A", None), ("A", None), ("A", None), ("-?", None), ("A", None), ("A", None)] },
    Row { section: "3.10.7.1", name: "RST+SYN", flags: "SR", seq: 0, length: 0, ack: Ack::Una,
        cells: [("-", None), ("-", None), ("-", None), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed)), ("-", to(Closed))] },
];
