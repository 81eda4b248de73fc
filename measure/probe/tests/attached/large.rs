//! More memory than is searched in a stop: it is searched while the target runs.
use super::attaching::{attach, choose, reap};
use super::target::{Target, compile};
use hopscope_probe::live::found;
use hopscope_probe::live::remove;
use hopscope_process::stop_one;
use hopscope_process::write_track::{Pages, WriteTrack};
use std::ops::Range;

fn start() -> (Target, u64) {
    let mut target = Target::start(&compile("large"), "");
    let line = target.line();
    let at = u64::from_str_radix(line.trim_start_matches("0x"), 16).unwrap();
    (target, at)
}

/// Writes can be tracked from Linux 6.7 on.
fn track(target: &Target) -> Option<WriteTrack> {
    let mut stopped = stop_one(target.pid()).unwrap();
    let track = WriteTrack::begin(&mut stopped);
    stopped.resume().unwrap();
    track.map_err(|e| println!("SKIP: {e}")).ok()
}

/// First and last address of what was written, and in how many runs.
fn written(track: &WriteTrack, range: &Range<u64>) -> (usize, Option<(u64, u64)>) {
    let runs = track.written(range, Pages::All).unwrap();
    let ends = runs.first().zip(runs.last());
    (
        runs.len(),
        ends.map(|(first, last)| (first.start, last.end)),
    )
}

#[test]
fn what_is_written_after_it_was_protected_is_told() {
    let (mut target, at) = start();
    let Some(track) = track(&target) else { return };
    let pages = at..at + (1 << 20);
    track.register(&pages).unwrap();
    assert_eq!(written(&track, &pages), (1, Some((pages.start, pages.end))));
    track.protect(&pages).unwrap();
    assert_eq!(written(&track, &pages), (0, None));
    target.tell();
    assert_eq!(target.line(), "1");
    assert_eq!(
        written(&track, &pages),
        (1, Some((at + 0x2000, at + 0x3000)))
    );
    drop(track);
    // As before, and no descriptor of ours is left.
    target.tell();
    assert_eq!(target.line(), "1");
    for entry in std::fs::read_dir(format!("/proc/{}/fd", target.pid())).unwrap() {
        let link = std::fs::read_link(entry.unwrap().path()).unwrap();
        assert!(!link.to_string_lossy().contains("userfaultfd"), "{link:?}");
    }
}

#[test]
fn the_copies_go() {
    let (mut target, _) = start();
    if track(&target).is_none() {
        return;
    }
    let (plan, items) = choose(&target, &["one_step"]);
    let installed = attach(&target, &plan, &items, 14).unwrap();
    target.tell();
    assert_eq!(target.line(), "1");
    let (memory, table) = (&installed.memory, &installed.table);
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    let notes = reap(&installed);
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(found::in_process(target.pid()), []);
    target.tell();
    assert_eq!(target.line(), "1");
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}

/// KiB of the program's text that are not the file's pages.
fn own_text_kib(pid: i32) -> u64 {
    let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let text = smaps.split_once(" r-xp ").unwrap().1;
    let line = text.lines().find(|l| l.starts_with("Anonymous:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn pages_of_text_are_shared_again() {
    let (mut target, _) = start();
    let pid = target.pid();
    let before = own_text_kib(pid);
    let (plan, items) = choose(&target, &["one_step"]);
    let installed = attach(&target, &plan, &items, 14).unwrap();
    assert!(own_text_kib(pid) > before);
    let (memory, table) = (&installed.memory, &installed.table);
    remove::restore(pid, memory, table, remove::Origin::Ourselves).unwrap();
    reap(&installed);
    assert_eq!(own_text_kib(pid), before);
    target.tell();
    assert_eq!(target.line(), "1");
}

/// What another tool wrote there stays, also on a page of ours.
#[test]
fn a_page_that_others_changed_stays() {
    let (target, _) = start();
    let pid = target.pid();
    let (plan, items) = choose(&target, &["one_step"]);
    let installed = attach(&target, &plan, &items, 14).unwrap();
    let (memory, table) = (&installed.memory, &installed.table);
    // Padding in front of the function, on its page.
    let padding = table.patches[0].at - 1;
    let mut byte = [0u8];
    memory.read(padding, &mut byte).unwrap();
    memory.write(padding, &[!byte[0]]).unwrap();
    remove::restore(pid, memory, table, remove::Origin::Ourselves).unwrap();
    reap(&installed);
    let mut now = [0u8];
    memory.read(padding, &mut now).unwrap();
    assert_eq!(now, [!byte[0]]);
}
