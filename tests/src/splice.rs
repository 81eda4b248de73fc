//! `hopscope splice` around unmodified programs: every byte arrives, memory stays bounded, nothing
//! outlives it, and what cannot be joined says why.
use hopscope_tests::{Requirement, Suite};

mod bounds;
mod bytes;
mod cpuset;
mod edges;
mod ends;
mod leaving;
mod pair;
mod peeks;
mod plain;
mod programs;
mod refused;
mod rings;
mod scene;
mod sleeps;
mod tells;
mod threads;
mod trials;
mod twins;
mod unmounted;
mod unread;
mod urgent;
mod verify;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Go, Haproxy, Java, Netns, Nft, Nginx, Python3, Redis, Root, Splice};
    let here = &[Root, Splice, Gcc];
    for (name, way) in bytes::WAYS {
        suite
            .case(
                format!("splice::every_byte_arrives_{name}"),
                &[Root, Splice, Gcc, Netns],
                move || bytes::arrive(way),
            )
            .in_turn();
    }
    suite.case(
        "splice::bytes_keep_their_order_while_the_way_changes",
        here,
        bounds::order,
    );
    suite.case(
        "splice::a_slow_reader_costs_no_more_than_tcp",
        here,
        bounds::slow_reader,
    );
    suite.case(
        "splice::smaller_buffers_hold_less_at_once",
        here,
        bounds::lowered,
    );
    suite.case("splice::killed_it_leaves_nothing", here, leaving::killed);
    suite.case(
        "splice::killed_after_its_keeper_it_leaves_nothing",
        here,
        leaving::killed_after_its_keeper,
    );
    suite.case("splice::ended_it_leaves_nothing", here, leaving::ended);
    suite.case(
        "splice::a_send_under_way_is_not_lost",
        here,
        leaving::under_way,
    );
    suite.case(
        "splice::a_full_map_falls_back_and_is_counted",
        here,
        plain::full,
    );
    suite.case(
        "splice::who_has_no_peer_inside_stays_plain",
        here,
        plain::outside,
    );
    suite
        .case(
            "splice::connections_of_the_same_name_are_not_mixed_up",
            &[Root, Splice, Gcc, Netns],
            twins::run,
        )
        .in_turn();
    suite.case(
        "splice::a_run_gives_its_counters_as_json",
        here,
        plain::json,
    );
    suite.case(
        "splice::attached_programs_are_joined",
        here,
        plain::attached,
    );
    suite.case("splice::after_churn_the_maps_are_empty", here, plain::churn);
    suite
        .case(
            "splice::after_minutes_of_churn_nothing_is_lost",
            here,
            plain::long_churn,
        )
        .in_turn()
        .watchdog(1800);
    suite.case(
        "splice::redis_is_none_the_wiser",
        &[Root, Splice, Redis],
        programs::redis,
    );
    suite.case(
        "splice::haproxy_is_none_the_wiser",
        &[Root, Splice, Haproxy, Python3],
        programs::haproxy,
    );
    suite.case(
        "splice::asyncio_is_none_the_wiser",
        &[Root, Splice, Python3],
        programs::asyncio,
    );
    suite.case(
        "splice::go_is_none_the_wiser",
        &[Root, Splice, Go, Gcc],
        programs::go,
    );
    suite.case("splice::each_refusal_is_one_clear_line", here, refused::run);
    suite.case(
        "splice::without_privileges_it_says_which",
        here,
        refused::unprivileged,
    );
    suite.case(
        "splice::its_own_mount_of_cgroup2_is_nobody_elses",
        here,
        unmounted::command_that_leaves_a_process,
    );
    suite.case(
        "splice::programs_that_would_hang_are_refused",
        &[Root, Splice, Nginx, Java],
        refused::readers,
    );
    suite.case(
        "splice::a_program_that_would_hang_is_left_out",
        &[Root, Splice, Nginx, Python3],
        refused::reader_inside,
    );
    suite.case(
        "splice::policies_of_others_are_asked_about",
        here,
        refused::policies,
    );
    suite.case(
        "splice::threads_that_share_a_connection_are_left_out",
        here,
        threads::run,
    );
    suite.case("splice::the_check_tells_what_is_broken", here, trials::run);
    suite.case(
        "splice::a_late_handshake_is_no_broken_kernel",
        &[Root, Splice, Nft],
        trials::late_handshakes,
    );
    edges::register(suite);
    ends::register(suite);
    pair::register(suite);
    peeks::register(suite);
    tells::register(suite);
    rings::register(suite);
    sleeps::register(suite);
    unread::register(suite);
    urgent::register(suite);
    verify::register(suite);
}
