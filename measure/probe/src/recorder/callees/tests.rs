use super::*;
use crate::locate::{Image, MappedModule};
use hopscope_event::{Value, callee};
use std::sync::Arc;

const CALLS: FunctionId = FunctionId(1);
/// Of no process.
const PID: i32 = 0;

fn function(id: u32, name: &str) -> FunctionEntry {
    FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: name.into(),
        svma: 0x1000,
        size: 0x40,
        file: None,
        line: None,
    }
}

/// Of a process that is none: addresses are names.
fn callees() -> Callees {
    let functions = [
        function(0, "main_loop"),
        function(1, &callee::name(callee::UNKNOWN, "main_loop")),
    ];
    let next = Numbering::after(2, 1);
    let names = || Names::new(PID, Files::new(), &[]);
    Callees::of(&functions, &[callee::row(CALLS)], next, names).expect("there are calls")
}

fn record(kind: RecordKind, function: FunctionId, rsp: u32) -> Record {
    Record::new(1, function, kind, rsp)
}

fn to(address: u64) -> Record {
    let value = Value {
        capture: callee::CAPTURE,
        element: 0,
        content: Content::Value(address),
    };
    value.record(CALLS)
}

fn functions(records: &[Record]) -> Vec<u32> {
    records.iter().map(|r| r.function().0).collect()
}

use RecordKind::{Entry, Exit};

#[test]
fn calls_get_functions_by_their_addresses() {
    let mut callees = callees();
    let mut open = OpenCalls::default();
    let mut records = [
        record(Entry, FunctionId(0), 0x900),
        record(Entry, CALLS, 0x800),
        to(0x5000),
        // Of a callee that calls through a pointer itself.
        record(Entry, CALLS, 0x700),
        to(0x6000),
        record(Exit, CALLS, 0x700),
        record(Exit, CALLS, 0x800),
        record(Entry, CALLS, 0x800),
        to(0x5000),
    ];
    callees.name(PID, &mut open, false, &mut records);
    assert_eq!(functions(&records), [0, 2, 2, 3, 3, 3, 2, 2, 2]);
    let new = callees.take_new();
    let names: Vec<&str> = new.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "0x5000 [called by main_loop]",
            "0x6000 [called by main_loop]"
        ]
    );
    let module = &new.modules[..];
    assert_eq!((module.len(), module[0].ix), (1, ModuleIx(1)));
    assert!(new.functions.iter().all(|f| f.module == ModuleIx(1)));
    // It ends in the next batch.
    let mut rest = [record(Exit, CALLS, 0x800)];
    callees.name(PID, &mut open, false, &mut rest);
    assert_eq!(functions(&rest), [2]);
    assert!(callees.take_new().functions.is_empty());
    assert_eq!(callees.note(1), None);
}

#[test]
fn what_is_not_known_stays_so() {
    let mut callees = callees();
    let mut open = OpenCalls::default();
    let mut records = [
        record(Entry, CALLS, 0x800),
        to(0x5000),
        // Its value is missing.
        record(Entry, CALLS, 0x800),
        record(Exit, CALLS, 0x800),
        // Without an entry.
        record(Exit, CALLS, 0x600),
    ];
    callees.name(PID, &mut open, false, &mut records);
    assert_eq!(functions(&records), [2, 2, 1, 1, 1]);
    let mut begun = [record(Entry, CALLS, 0x800), to(0x5000)];
    callees.name(PID, &mut open, false, &mut begun);
    // Between them something is missing: it may be the end of another call.
    let mut ended = [record(Exit, CALLS, 0x800)];
    callees.name(PID, &mut open, true, &mut ended);
    assert_eq!(functions(&ended), [1]);
}

#[test]
fn code_without_end_is_not_told_apart() {
    let mut callees = callees();
    let mut open = OpenCalls::default();
    for n in 0..CALLEES_MAX as u64 + 3 {
        let mut call = [
            record(Entry, CALLS, 0x800),
            to(n),
            record(Exit, CALLS, 0x800),
        ];
        callees.name(PID, &mut open, false, &mut call);
        let known = n < CALLEES_MAX as u64;
        assert_eq!(call[0].function() != CALLS, known, "{n}");
        assert_eq!(call[2].function(), call[0].function());
    }
    assert_eq!(callees.take_new().functions.len(), CALLEES_MAX);
    let note = callees.note(7).expect("some are unknown");
    assert!(note.starts_with("process 7: 3 calls"), "{note}");
}

/// It ended between being attached to and being looked at again.
#[test]
fn callees_of_a_process_that_is_gone_have_names() {
    let own = std::process::id() as i32;
    let loads = crate::locate::mapped_modules(own).unwrap();
    let exe = std::env::current_exe().unwrap();
    let program = loads.iter().find(|m| m.path == exe).unwrap();
    let image = Arc::new(Image::open_mapped(own, program).unwrap());
    let function = image.functions().iter().find(|f| f.size > 8).unwrap();
    let address = function.svma.wrapping_add(program.bias);
    let named = |loads: &[MappedModule]| {
        let files = [(exe.clone(), (Some(image.clone()), ModuleIx(3)))];
        let mut names = Names::new(PID, files.into_iter().collect(), loads);
        names.begin();
        names.of(address).name
    };
    assert_eq!(named(&loads), function.name);
    assert_eq!(named(&[]), format!("{address:#x}"));
}
