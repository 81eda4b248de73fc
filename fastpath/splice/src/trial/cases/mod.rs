//! The known faults of redirected sockets, one case each.
mod checks;
mod memory;
mod reading;
mod stream;
mod waiting;

use super::pair::{Place, joined};
use super::{TrialResult, Weight};
use crate::programs::Accelerator;
use checks::flat;
use memory::memory;
use reading::{fionread, peek, splice_2, unread_reset};
use stream::{early_data, eof, half_close, short_cut};
use waiting::{interrupted, shared, waitall};

#[derive(Clone, Copy)]
pub(super) struct Trial {
    pub name: &'static str,
    pub means: &'static str,
    pub weight: Weight,
    /// With bytes received by TCP, at redirected sockets.
    pub by_tcp: bool,
    pub is_slow: bool,
    pub run: fn(&Place, &Accelerator) -> TrialResult,
}

const fn trial(
    name: &'static str,
    weight: Weight,
    means: &'static str,
    run: fn(&Place, &Accelerator) -> TrialResult,
) -> Trial {
    Trial {
        name,
        means,
        weight,
        by_tcp: false,
        is_slow: false,
        run,
    }
}

const fn by_tcp(mut trial: Trial) -> Trial {
    trial.by_tcp = true;
    trial
}

const fn slow(mut trial: Trial) -> Trial {
    trial.is_slow = true;
    trial
}

use Weight::{Fionread, Said, Shared, Vital, Waits};

pub(super) const ALL: [Trial; 15] = [
    trial(
        "joins",
        Vital,
        "no connection would be accelerated",
        |place, with| flat(short_cut(place, with)),
    ),
    trial(
        "early-data",
        Vital,
        "data sent before accept() would not be seen, and both ends would hang",
        |place, with| flat(early_data(place, with)),
    ),
    trial(
        "eof-overtakes",
        Vital,
        "a connection that is closed at once would lose its tail",
        |place, with| flat(eof(place, with)),
    ),
    trial(
        "half-close",
        Vital,
        "answers after the client's shutdown would be lost",
        |place, with| flat(half_close(place, with)),
    ),
    slow(trial(
        "memory-bound",
        Vital,
        "a reader that stops would cost memory without end",
        |place, with| flat(memory(place, with)),
    )),
    trial(
        "fionread",
        Fionread,
        "programs that use FIONREAD (nginx, Java, .NET) get a wrong number and hang: they are excluded",
        |place, with| flat(joined(place.listener(), with).and_then(fionread)),
    ),
    trial(
        "peek",
        Said,
        "programs that look ahead (MSG_PEEK) see other bytes than they read",
        |place, with| flat(joined(place.listener(), with).and_then(peek)),
    ),
    trial(
        "splice",
        Said,
        "programs that use splice(2) get EAGAIN and may hang: haproxy with option splice-*",
        |place, with| flat(joined(place.listener(), with).and_then(splice_2)),
    ),
    trial(
        "waitall",
        Waits,
        "programs that read with MSG_WAITALL get less than requested",
        |place, with| flat(joined(place.listener(), with).and_then(waitall)),
    ),
    trial(
        "interrupted",
        Waits,
        "programs that wait in recv() get EAGAIN when a signal, a stop, a debugger or a reset ends the wait, and take it for a time-out",
        |place, with| flat(joined(place.listener(), with).and_then(interrupted)),
    ),
    trial(
        "unread-reset",
        Said,
        "where a program closes a connection with unread bytes, the other end is told of an orderly end, not of a reset",
        |place, with| flat(joined(place.listener(), with).and_then(unread_reset)),
    ),
    trial(
        "shared",
        Shared,
        "programs that wait in a blocking recv() in one thread while another sends on the same connection get EAGAIN when there is room to send again: they are left out once they are seen",
        |place, with| flat(joined(place.listener(), with).and_then(shared)),
    ),
    by_tcp(trial(
        "fionread-tcp",
        Fionread,
        "programs that use FIONREAD (nginx, Java, .NET) get 0 for bytes that came by TCP and hang: they are excluded",
        |place, _| flat(place.prepared().and_then(fionread)),
    )),
    by_tcp(trial(
        "peek-tcp",
        Said,
        "programs that look ahead (MSG_PEEK) see other bytes than they read where these came by TCP",
        |place, _| flat(place.prepared().and_then(peek)),
    )),
    by_tcp(trial(
        "splice-tcp",
        Said,
        "programs that move bytes with splice(2) get EAGAIN where these came by TCP",
        |place, _| flat(place.prepared().and_then(splice_2)),
    )),
];
