//! Runs every cell of the table, each on a connection of its own.
use super::segments::{Ack, ROWS, Row};
use super::states::{At, STATES, reach};
use crate::support::packet::{ACK, RST, SYN, Segment};
use hopscope_stack_engine::TcpState;

#[test]
fn rfc9293_3_10_7_states_and_segments() {
    let mut wrong = Vec::new();
    for row in ROWS {
        for (index, state) in STATES.into_iter().enumerate() {
            let (answer, next) = row.cells[index];
            let (got, got_state) = answer_of(reach(state), row);
            let next = next.unwrap_or(state);
            let right_answer =
                got == answer.trim_end_matches('?') || answer.ends_with('?') && got == "-";
            let listens = state == TcpState::Listen && next == TcpState::Listen;
            let right_state = got_state == next || listens && got_state == TcpState::Closed;
            if !right_answer || !right_state {
                wrong.push(format!(
                    "{} ({}) in {state:?}: {got} and {got_state:?}, not {answer} and {next:?}",
                    row.name, row.section
                ));
            }
        }
    }
    let cells = ROWS.len() * STATES.len();
    assert!(
        wrong.is_empty(),
        "{} of {cells} cells:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// What one segment makes the engine send at once or as a delayed ACK, and the state after it.
fn answer_of(mut at: At, row: &Row) -> (String, TcpState) {
    if at.script.listener.is_none() && at.script.state() == TcpState::TimeWait {
        at.script.listener = Some(at.script.host.listen(80, 16));
    }
    let relative = |base: u32, offset: i64| i64::from(base) + offset;
    let ack = match row.ack {
        Ack::Una => relative(at.snd_una, 0),
        Ack::Next(offset) => relative(at.snd_nxt, offset),
    };
    let seq = relative(at.rcv_nxt, row.seq);
    let end = seq + i64::from(row.length);
    let text = format!("{} {seq}:{end}({}) ack {ack}", row.flags, row.length);
    at.script.inject(&text);
    let state = at.script.state();
    if at.script.host.sent.is_empty() && row.length + u32::from(row.flags.contains('F')) > 0 {
        // Shorter than any retransmission.
        at.script.host.run_ms(150);
    }
    let mut answers = String::new();
    while let Some((_, _, to, segment)) = at.script.host.take_segment() {
        assert_eq!(to, at.script.peer_end);
        answers.push(letter(&segment));
        verify(&at, row, &segment);
    }
    (
        if answers.is_empty() {
            "-".to_owned()
        } else {
            answers
        },
        state,
    )
}

fn letter(segment: &Segment) -> char {
    match segment {
        s if s.has(RST) => 'R',
        s if s.has(SYN) => 'S',
        s if s.has(ACK) && s.payload.is_empty() => 'A',
        _ => '!',
    }
}

/// The numbers of a reset (3.10.7.1) and of an ACK.
fn verify(at: &At, row: &Row, sent: &Segment) {
    let context = format!("{}: {}", row.name, at.script.show(sent));
    if sent.has(RST) && sent.has(ACK) {
        assert_eq!(sent.seq, 0, "{context}");
    }
    if sent.has(RST) && row.flags.contains('.') {
        assert!(!sent.has(ACK), "{context}: the segment had ACK");
        let ack = match row.ack {
            Ack::Una => i64::from(at.snd_una),
            Ack::Next(offset) => i64::from(at.snd_nxt) + offset,
        };
        assert_eq!(
            sent.seq,
            at.script.engine_iss.wrapping_add(ack as u32),
            "{context}"
        );
    }
    if letter(sent) == 'A' && at.script.engine_iss != 0 {
        assert_eq!(
            sent.seq,
            at.script.engine_iss.wrapping_add(at.snd_nxt),
            "{context}"
        );
    }
}
