use super::Events;
use hopscope_event::{Content, FunctionId, RecordKind};
use std::sync::mpsc::sync_channel;

const KICK: FunctionId = FunctionId(0);
const DRAIN: FunctionId = FunctionId(2);
const CALL: FunctionId = FunctionId(3);

#[test]
fn a_call_within_a_drain_is_within_it_and_what_came_to_nothing_is_not_there() {
    let (full, batches) = sync_channel(1);
    let first_thread = 0;
    let mut queue = Events { first_thread, full }.log(1);
    queue.begin(DRAIN);
    queue.end(DRAIN, 0);
    queue.begin(DRAIN);
    queue.begin(CALL);
    queue.end(CALL, 1);
    queue.end(DRAIN, 3);
    drop(queue);
    let batch = batches.recv().unwrap();
    assert_eq!((batch.first_index, batch.lost_before), (0, 0));
    let kinds = batch.records.iter().map(|r| (r.function().0, r.kind()));
    let (drain, call) = (DRAIN.0, CALL.0);
    let of = |function, kind| (function, Some(kind));
    let expected = [
        of(drain, RecordKind::Entry),
        of(call, RecordKind::Entry),
        of(call, RecordKind::Value),
        of(call, RecordKind::Exit),
        of(drain, RecordKind::Value),
        of(drain, RecordKind::Exit),
    ];
    assert!(kinds.eq(expected));
    let stacks: Vec<u32> = [0, 1, 3, 5].map(|n| batch.records[n].rsp_lo32()).into();
    assert!(stacks[1] < stacks[0] && stacks[1] == stacks[2] && stacks[0] == stacks[3]);
    let value = batch.records[4].value().unwrap();
    assert_eq!(value.content, Content::Value(3));
}

#[test]
fn what_a_slow_disk_does_not_take_is_counted_once() {
    let (full, batches) = sync_channel(1);
    let first_thread = 0;
    let mut queue = Events { first_thread, full }.log(0);
    let mut records = 0;
    // Three full batches; one has room to wait.
    while records < 3 * super::BATCH as u64 {
        queue.begin(KICK);
        queue.end(KICK, 1);
        records += 3;
    }
    let (mut written, mut lost) = (0, 0);
    let reader = std::thread::spawn(move || {
        for batch in batches {
            assert_eq!(batch.first_index, written + lost + batch.lost_before);
            written += batch.records.len() as u64;
            lost += batch.lost_before;
        }
        (written, lost)
    });
    drop(queue);
    let (written, lost) = reader.join().unwrap();
    assert!(lost > 0);
    assert_eq!(written + lost, records);
}
