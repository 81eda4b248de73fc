//! Which policy to take, from what each would have sent.
use super::Would;
use crate::Ns;
use crate::policy::PolicyKind;
use std::fmt;

/// Fewer notifications than these do not decide anything.
const ENTRIES_MIN: u64 = 1_000;
/// A change is worth it when it saves a tenth of the notifications.
const SAVED_MIN: f64 = 0.1;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "advice", rename_all = "snake_case")]
pub enum Advice {
    /// Too little was seen.
    TooFew {
        published: u64,
    },
    /// No other would send less and keep entries waiting no longer.
    Keep {
        policy: PolicyKind,
    },
    Change {
        from: Box<Would>,
        to: Box<Would>,
    },
}

/// Of those whose entries wait no longer than `wait` on the average, the one that would notify least;
/// among equals the one that keeps entries waiting least. `at_work` is one of `all`.
pub fn advise(at_work: PolicyKind, all: &[Would], wait: Ns) -> Advice {
    let Some(from) = all.iter().find(|would| would.policy == at_work) else {
        return Advice::TooFew { published: 0 };
    };
    if from.counts.published < ENTRIES_MIN {
        return Advice::TooFew {
            published: from.counts.published,
        };
    }
    let fit = |would: &&Would| would.wait() <= wait.max(from.wait());
    let best = all
        .iter()
        .filter(fit)
        .min_by_key(|would| (would.counts.notified, would.waited));
    let enough = from.counts.notified as f64 * (1.0 - SAVED_MIN);
    match best {
        Some(to) if (to.counts.notified as f64) < enough => Advice::Change {
            from: Box::new(*from),
            to: Box::new(*to),
        },
        _ => Advice::Keep { policy: at_work },
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: Ns| ns.0 as f64 / 1e3;
        match self {
            Advice::TooFew { published } => {
                write!(f, "{published} packets are too few to tell")
            }
            Advice::Keep { policy } => {
                write!(f, "{policy}: no other policy would notify a tenth less")
            }
            Advice::Change { from, to } => write!(
                f,
                "{} notifies {:.3} times a packet; {} would {:.3} times, with packets waiting {:.1} us on the \
                 average ({:.1} us at most) instead of {:.1} us",
                from.policy,
                from.notified_per_entry(),
                to.policy,
                to.notified_per_entry(),
                us(to.wait()),
                us(to.counts.hold_max),
                us(from.wait()),
            ),
        }
    }
}
