//! Scripts that lead a connection into each state.
use crate::support::host::config;
use crate::support::script::Script;
use hopscope_stack_engine::{HowToShut, TcpState};

/// In the order of the table's cells.
pub const STATES: [TcpState; 11] = [
    TcpState::Closed,
    TcpState::Listen,
    TcpState::SynSent,
    TcpState::SynReceived,
    TcpState::Established,
    TcpState::FinWait1,
    TcpState::FinWait2,
    TcpState::Closing,
    TcpState::TimeWait,
    TcpState::CloseWait,
    TcpState::LastAck,
];

/// A connection in the state, and RCV.NXT, SND.UNA and SND.NXT relative to the initial sequence numbers.
pub struct At {
    pub script: Script,
    pub rcv_nxt: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
}

pub fn reach(state: TcpState) -> At {
    let at = |script, rcv_nxt, snd_una, snd_nxt| At {
        script,
        rcv_nxt,
        snd_una,
        snd_nxt,
    };
    let at = match state {
        TcpState::Closed => at(Script::new(config()), 1, 1, 1),
        TcpState::Listen => at(Script::listening(config()), 1, 1, 1),
        TcpState::SynSent => {
            let mut script = Script::connecting(config());
            script.expect("S 0:0(0)");
            at(script, 0, 0, 1)
        }
        TcpState::SynReceived => {
            let mut script = Script::listening(config());
            script.inject("S 0:0(0) win 32000 <mss 1000>");
            script.expect("S. 0:0(0) ack 1");
            at(script, 1, 0, 1)
        }
        TcpState::Established => at(Script::established(), 1, 1, 1),
        TcpState::FinWait1 => at(half_closed(Script::established(), 1), 1, 1, 2),
        TcpState::FinWait2 => {
            let mut script = half_closed(Script::established(), 1);
            script.inject(". 1:1(0) ack 2");
            at(script, 1, 2, 2)
        }
        TcpState::Closing => {
            let mut script = half_closed(Script::established(), 1);
            script.inject("F. 1:1(0) ack 1");
            script.expect(". 2:2(0) ack 2");
            at(script, 2, 1, 2)
        }
        TcpState::TimeWait => {
            let mut script = half_closed(Script::established(), 1);
            script.inject("F. 1:1(0) ack 2");
            script.expect(". 2:2(0) ack 2");
            at(script, 2, 2, 2)
        }
        TcpState::CloseWait => at(ended(Script::established()), 2, 1, 1),
        TcpState::LastAck => at(half_closed(ended(Script::established()), 2), 2, 1, 2),
    };
    if state != TcpState::Listen {
        assert_eq!(at.script.state(), state);
    }
    at
}

/// Shut down for writing; the peer's stream is acknowledged up to `ack`.
fn half_closed(mut script: Script, ack: u32) -> Script {
    let (now, id) = (script.host.now, script.id());
    script
        .host
        .engine
        .shutdown(now, id, HowToShut::Write)
        .expect("shutdown");
    script.expect(&format!("F. 1:1(0) ack {ack}"));
    script
}

/// The peer has sent FIN.
fn ended(mut script: Script) -> Script {
    script.inject("F. 1:1(0) ack 1");
    // The acknowledgement of a FIN may be delayed; the next segment carries it.
    script.host.run_ms(200);
    script.expect(". 1:1(0) ack 2");
    script
}
