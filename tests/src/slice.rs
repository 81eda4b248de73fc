//! `hopscope slice` on this machine's kernel: what it refuses, what it counts, and that nothing of it
//! stays in the kernel.
use hopscope_tests::{Requirement, Suite};

mod leaving;
mod live;
mod losses;
mod overheard;
mod refused;
mod relinquish;
mod soak;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Root, SliceHooks};
    let live = &[Root, Netns, SliceHooks];
    suite.case("slice::each_refusal_is_one_clear_line", live, refused::run);
    suite.case(
        "slice::without_privileges_it_says_which",
        live,
        refused::unprivileged,
    );
    suite.case(
        "slice::damaged_recordings_are_refused_or_said",
        live,
        refused::damaged,
    );
    suite.case("slice::z_gives_up_every_privilege", live, relinquish::run);
    suite
        .case("slice::at_the_highest_rate_it_adds_up", live, soak::run)
        .alone();
    let compiled = &[Root, Netns, SliceHooks, Gcc];
    suite.case(
        "slice::no_hook_outlives_its_process",
        compiled,
        leaving::run,
    );
    suite.case(
        "slice::an_interface_may_go",
        compiled,
        losses::interface_goes,
    );
    suite.case(
        "slice::too_few_slots_are_counted",
        live,
        losses::too_few_slots,
    );
    suite.case(
        "slice::who_listens_in_is_not_the_reader",
        live,
        overheard::run,
    );
}
