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

/// A line a case: name, weight, how it is run, what it means. `joined`, `by_tcp`: on a connection that is there.
macro_rules! trials {
    ($($name:literal $weight:ident $how:ident $run:ident $means:literal,)*) => {
        [$(trials!(@$how $run $name, $weight, $means)),*]
    };
    (@with $run:ident $($what:expr),*) => {
        trial($($what),*, |place, with| flat($run(place, with)))
    };
    (@slow $run:ident $($what:expr),*) => { slow(trials!(@with $run $($what),*)) };
    (@joined $run:ident $($what:expr),*) => {
        trial($($what),*, |place, with| flat(joined(place.listener(), with).and_then($run)))
    };
    (@by_tcp $run:ident $($what:expr),*) => {
        by_tcp(trial($($what),*, |place, _| flat(place.prepared().and_then($run))))
    };
}

pub(super) const ALL: [Trial; 15] = trials! {
    "joins" Vital with short_cut "no connection would be accelerated",
    "early-data" Vital with early_data "data sent before accept() would not be seen, and both ends would hang",
    "eof-overtakes" Vital with eof "a connection that is closed at once would lose its tail",
    "half-close" Vital with half_close "answers after the client's shutdown would be lost",
    "memory-bound" Vital slow memory "a reader that stops would cost memory without end",
    "fionread" Fionread joined fionread "programs that use FIONREAD (nginx, Java, .NET) get a wrong number and hang: they are excluded",
    "peek" Said joined peek "programs that look ahead (MSG_PEEK) see other bytes than they read",
    "splice" Said joined splice_2 "programs that use splice(2) get EAGAIN and may hang: haproxy with option splice-*",
    "waitall" Waits joined waitall "programs that read with MSG_WAITALL get less than requested",
    "interrupted" Waits joined interrupted "programs that wait in recv() get EAGAIN when a signal, a stop, a debugger or a reset ends the wait, and take it for a time-out",
    "unread-reset" Said joined unread_reset "where a program closes a connection with unread bytes, the other end is told of an orderly end, not of a reset",
    "shared" Shared joined shared "programs that wait in a blocking recv() in one thread while another sends on the same connection get EAGAIN when there is room to send again: they are left out once they are seen",
    "fionread-tcp" Fionread by_tcp fionread "programs that use FIONREAD (nginx, Java, .NET) get 0 for bytes that came by TCP and hang: they are excluded",
    "peek-tcp" Said by_tcp peek "programs that look ahead (MSG_PEEK) see other bytes than they read where these came by TCP",
    "splice-tcp" Said by_tcp splice_2 "programs that move bytes with splice(2) get EAGAIN where these came by TCP",
};
