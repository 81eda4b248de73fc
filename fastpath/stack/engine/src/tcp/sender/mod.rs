//! The sending half of a connection without its bytes: what was sent and when, what arrived, what is lost, and how much may be under way.
//!
//! The owner transmits, in this order: first what [`Sender::next_retransmission`] names, then new bytes as [`Sender::sendable_new`] allows, and
//! reports each segment with [`Sender::sent`]. It hands over each acceptable ACK with [`Sender::acknowledged`], and calls [`Sender::on_timer`] when
//! [`Sender::timer`] is due. SYN is not the sender's: it begins with the connection established. FIN is one more sequence number of a range.
mod acknowledged;
mod config;
mod cubic;
mod delivery;
mod detect;
mod entry;
mod frame;
mod hystart;
mod min_rtt;
mod mss;
mod prr;
mod rack;
mod ranges;
mod recover;
mod reno;
mod rtt;
mod sacks;
mod scoreboard;
mod send_log;
mod state;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod types;
mod undo;
mod usage;
mod window;

pub(crate) use config::SenderConfig;
pub(crate) use state::Sender;
pub(crate) use types::{Ack, SentKind, TimerAction};
