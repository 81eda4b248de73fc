//! `hopscope slice` on this machine's kernel: what it refuses, what it counts, and that nothing of it
//! stays in the kernel.
use hopscope_tests::{Requirement, Suite};

mod chosen;
mod full_disk;
mod leaving;
mod live;
mod losses;
mod numbers;
mod overheard;
mod places;
mod refused;
mod relinquish;
mod room;
mod sent_on;
mod soak;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Python3, Root, SliceHooks};
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
        "slice::an_interface_of_a_namespace_may_go",
        live,
        losses::interface_of_a_namespace_goes,
    );
    suite.case(
        "slice::a_full_disk_ends_it_with_its_counts",
        live,
        full_disk::run,
    );
    suite.case(
        "slice::too_few_slots_are_counted",
        live,
        losses::too_few_slots,
    );
    suite.case(
        "slice::a_packet_without_a_slot_is_counted_once_over_veth",
        live,
        room::without_slots,
    );
    suite.case(
        "slice::packets_beyond_a_sockets_queue_are_lost",
        live,
        room::beyond_the_queue,
    );
    suite.case(
        "slice::segments_without_a_slot_are_counted_once",
        live,
        room::segments_without_slots,
    );
    suite.case(
        "slice::what_is_sent_on_is_no_segment",
        &[Root, Netns, SliceHooks, Python3],
        sent_on::run,
    );
    let name = "slice::records_end_whatever_is_asked_for";
    suite.case(name, live, numbers::regions_of_a_file);
    let name = "slice::a_look_at_data_is_no_copy_of_them";
    suite.case(name, compiled, numbers::peeked);
    let name = "slice::segments_out_of_order_say_so";
    suite.case(name, compiled, numbers::unordered);
    let name = "slice::a_full_queue_keeps_its_senders";
    suite.case(name, live, numbers::full_queue);
    let name = "slice::data_that_lay_there_are_unread";
    suite.case(name, live, numbers::unread);
    let name = "slice::a_command_has_all_of_its_connections";
    suite.case(name, live, chosen::of_a_command);
    let name = "slice::a_recording_knows_a_process_s_connections";
    suite.case(name, live, chosen::of_a_recording);
    let name = "slice::no_mount_of_cgroup2_is_needed";
    suite.case(name, live, places::without_cgroup2);
    let name = "slice::a_device_is_of_the_namespace_asked_for";
    suite.case(name, live, places::device_of_a_namespace);
    let name = "slice::constants_are_measured_once";
    suite.case(name, live, places::constants_are_kept);
    let name = "slice::constants_are_measured_beside_packets_that_others_do_not_read";
    suite.case(name, live, places::constants_beside_others);
    suite.case(
        "slice::who_listens_in_is_not_the_reader",
        live,
        overheard::run,
    );
}
