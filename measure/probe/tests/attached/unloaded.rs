//! A plug-in that is unloaded, or gives way to another one, between choice and attachment: it is
//! refused with the reason, and the rest is measured.
use super::attaching::{attach, choose};
use super::target::{Target, compile, compile_with};
use hopscope_event::ring::Visit;
use hopscope_probe::live::install::Installed;
use hopscope_probe::live::remove::{self, Arena};
use hopscope_probe::plan::Plan;

const RING_RECORDS_LOG2: u32 = 12;

fn start() -> Target {
    let plug_in = |factor| {
        let flags = ["-shared", "-fPIC", factor];
        compile_with("plug_in", &flags).display().to_string()
    };
    let both = [plug_in("-DFACTOR=3"), plug_in("-DFACTOR=5")].join(":");
    let mut target = Target::start(&compile("unloaded"), &both);
    assert_eq!(target.line(), "open");
    target
}

/// The one late refusal, for the plug-in's function.
fn refusal<'a>(plan: &Plan, installed: &'a Installed) -> &'a str {
    let [(id, reason)] = &installed.refused[..] else {
        panic!("{:?}", installed.refused);
    };
    assert_eq!(plan.functions[id.0 as usize].name, "plug_in_function");
    reason
}

/// The kept function's thousand calls are all there, and all right.
fn expect_measured(target: &mut Target, installed: Installed) {
    target.tell();
    assert_eq!(target.line(), "1000");
    let mut records = Vec::new();
    let (_, context) = installed.threads[0];
    let pool = installed.pool();
    let ring = pool.ring(context as usize).unwrap();
    ring.drain(
        &mut Default::default(),
        Visit::Live,
        usize::MAX,
        &mut records,
    );
    assert_eq!(records.len(), 2000);
    let (written, _) = remove::restore(
        target.pid(),
        &installed.memory,
        &installed.table,
        remove::Origin::Ourselves,
    )
    .unwrap();
    assert_eq!((written.sites.len(), written.left_out.len()), (1, 0));
    remove::reap(
        target.pid(),
        &installed.memory,
        &installed.table,
        Some(Arena::Mapped),
    )
    .unwrap();
    target.tell();
    assert_eq!(target.exit_code(), Some(0));
}

#[test]
fn an_unloaded_module_is_refused_and_the_rest_is_measured() {
    let mut target = start();
    let (plan, items) = choose(&target, &["plug_in_function", "kept_function"]);
    target.tell();
    assert_eq!(target.line(), "closed");
    let installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
    assert!(refusal(&plan, &installed).contains("unloaded"));
    target.tell();
    target.line();
    expect_measured(&mut target, installed);
}

#[test]
fn a_module_that_gave_way_to_another_is_refused() {
    let mut target = start();
    let (plan, items) = choose(&target, &["plug_in_function", "kept_function"]);
    target.tell();
    assert_eq!(target.line(), "closed");
    target.tell();
    let place = target.line();
    let installed = attach(&target, &plan, &items, RING_RECORDS_LOG2).unwrap();
    let reason = refusal(&plan, &installed);
    let expected = match place.as_str() {
        "same place" => "differs from its file",
        _ => "unloaded",
    };
    assert!(reason.contains(expected), "{place}: {reason}");
    expect_measured(&mut target, installed);
}

#[test]
fn nothing_left_to_measure_is_an_error_that_says_why() {
    let mut target = start();
    let (plan, items) = choose(&target, &["plug_in_function"]);
    target.tell();
    assert_eq!(target.line(), "closed");
    let error = attach(&target, &plan, &items, RING_RECORDS_LOG2)
        .err()
        .expect("nothing is left");
    assert!(error.to_string().contains("unloaded"), "{error}");
    target.tell();
    target.line();
    target.tell();
    assert_eq!(target.line(), "1000");
    target.tell();
    assert_eq!(target.exit_code(), Some(0));
}
