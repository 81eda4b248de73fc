//! Packet ports against the kernel: veth pairs and TAP devices, each case in a network namespace
//! of its own that goes with its process.
use hopscope_tests::{Requirement, Suite};

mod capture;
mod crossing;
mod frames;
mod ground_truth;
mod kept;
mod long;
mod mtu;
mod offload;
mod overrun;
mod refused;
mod vanishing;
mod veth;

pub(crate) use kept::received as packets_received;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Root, Tcx, Tshark};
    let kernel = &[Root, Netns];
    for (from, to) in crossing::PAIRS {
        suite.case(
            format!("netio::frames_arrive_identical_{from}_to_{to}"),
            kernel,
            move || crossing::run(from, to),
        );
    }
    for kind in ["packet", "xdp", "xdp-native"] {
        suite.case(
            format!("netio::an_overrun_{kind}_ring_counts_each_lost_frame"),
            kernel,
            move || overrun::device(kind),
        );
    }
    suite.case(
        "netio::an_overrun_tap_queue_counts_each_lost_frame",
        kernel,
        overrun::tap,
    );
    suite.case(
        "netio::large_frames_cross_veth_whole",
        kernel,
        offload::veth,
    );
    suite.case("netio::large_frames_cross_tap_whole", kernel, offload::tap);
    suite.case(
        "netio::long_frames_come_in_order_or_are_counted",
        kernel,
        long::in_order_or_counted,
    );
    suite.case("netio::long_frames_keep_their_tag", kernel, long::tagged);
    suite.case("netio::long_frames_are_handed_on", kernel, long::handed_on);
    for (kind, port) in [
        ("packet", "packet:right"),
        ("xdp", "xdp:right"),
        ("tap", "tap:tap"),
    ] {
        suite.case(
            format!("netio::a_{kind}_port_tells_its_devices_mtu"),
            kernel,
            move || mtu::told(port),
        );
    }
    suite.case(
        "netio::frames_beyond_a_lowered_mtu_are_counted",
        kernel,
        mtu::refused,
    );
    suite.case(
        "netio::packets_are_kept_from_the_kernel",
        &[Netns, Tcx],
        kept::run,
    );
    suite.case(
        "netio::a_tap_without_offload_gets_segments_with_checksums",
        kernel,
        offload::segmented,
    );
    suite.case(
        "netio::the_xdp_program_goes_with_a_killed_process",
        kernel,
        vanishing::run,
    );
    suite.case(
        "netio::each_refusal_is_one_clear_line",
        kernel,
        refused::run,
    );
    suite.case(
        "netio::the_bridge_does_what_its_seed_says",
        kernel,
        ground_truth::run,
    );
    suite.case(
        "netio::tshark_reads_both_formats_and_is_read",
        &[Tshark],
        capture::run,
    );
}
