//! What a run begins with when the user does not say.
use hopscope_analyze::{Batch, Index, RootChoice, RootError, RootSearch, Window};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionEntry, FunctionId, Record, RecordKind, ThreadIx};

#[derive(Default)]
struct Program {
    tsc: u64,
    open: Vec<u32>,
    records: Vec<Record>,
}

impl Program {
    fn pause(&mut self, ticks: u64) {
        self.tsc += ticks;
    }

    fn store(&mut self, function: u32, kind: RecordKind) {
        self.tsc += 10;
        let rsp = 0x7fff_0000 - 64 * self.open.len() as u32;
        self.records
            .push(Record::new(self.tsc, FunctionId(function), kind, rsp));
    }

    fn call(&mut self, function: u32, body: impl FnOnce(&mut Program)) {
        self.store(function, RecordKind::Entry);
        self.open.push(function);
        body(self);
        self.open.pop();
        self.store(function, RecordKind::Exit);
    }

    fn leaf(&mut self, function: u32) {
        self.call(function, |_| {});
    }

    fn with_packets_in(&self, function: u32) -> Result<RootChoice, RootError> {
        let search = self.search().packets_in(vec![FunctionId(function)]);
        search.suggest().map(|root| root.choice)
    }

    fn search(&self) -> RootSearch {
        let entry = |id| FunctionEntry {
            id: FunctionId(id),
            module: ModuleIx(0),
            name: format!("f{id}"),
            svma: 0,
            size: 1,
            file: None,
            line: None,
        };
        let functions: Vec<_> = (0..10).map(entry).collect();
        let mut search = RootSearch::new(Index::new(&functions, &[]), Window::default());
        search.feed(&Batch {
            thread: ThreadIx(0),
            first_index: 0,
            lost: 0,
            torn: 0,
            records: &self.records,
            taken: &[],
            early: false,
        });
        search
    }

    fn suggested(&self) -> Result<RootChoice, RootError> {
        self.search().suggest().map(|root| {
            assert!(root.suggested_because.is_some());
            root.choice
        })
    }
}

const POLL: u32 = 1;
const PIPELINE: u32 = 2;
const MODULES: [u32; 3] = [3, 4, 5];
const MAIN: u32 = 6;
const COMMAND: u32 = 7;
const WALK: u32 = 8;

#[test]
fn what_encloses_most_calls_is_the_root_however_often_the_loop_polls() {
    let mut program = Program::default();
    for _ in 0..20 {
        for _ in 0..100 {
            program.leaf(POLL);
        }
        program.call(PIPELINE, |p| MODULES.iter().for_each(|m| p.leaf(*m)));
    }
    let root = RootChoice::Function(FunctionId(PIPELINE));
    assert_eq!(program.suggested(), Ok(root));
}

/// A command comes once in 50 passes, and makes more calls and takes longer than all of these.
fn with_a_command(pass: impl Fn(&mut Program)) -> Program {
    let mut program = Program::default();
    for n in 0..200 {
        pass(&mut program);
        if n % 50 == 0 {
            program.call(COMMAND, |p| (0..500).for_each(|_| p.leaf(WALK)));
        }
    }
    program
}

#[test]
fn a_rare_command_is_not_the_root_however_many_calls_it_makes() {
    let program = with_a_command(|p| {
        p.call(PIPELINE, |p| MODULES.iter().for_each(|m| p.leaf(*m)));
    });
    let root = RootChoice::Function(FunctionId(PIPELINE));
    assert_eq!(program.suggested(), Ok(root));
}

#[test]
fn the_root_is_where_packets_are_captured() {
    // Nothing that it calls is measured.
    let program = with_a_command(|p| p.leaf(PIPELINE));
    let root = RootChoice::Function(FunctionId(PIPELINE));
    assert_eq!(program.with_packets_in(PIPELINE), Ok(root));
    // In what it calls.
    let program = with_a_command(|p| p.call(PIPELINE, |p| p.leaf(MODULES[0])));
    assert_eq!(program.with_packets_in(MODULES[0]), Ok(root));
    // What receives packets handles none.
    let program = with_a_command(|p| {
        p.leaf(POLL);
        p.call(PIPELINE, |p| MODULES.iter().for_each(|m| p.leaf(*m)));
    });
    assert_eq!(program.with_packets_in(POLL), Ok(root));
}

#[test]
fn a_measured_main_loop_is_no_run() {
    let mut program = Program::default();
    program.store(MAIN, RecordKind::Entry);
    program.open.push(MAIN);
    for _ in 0..20 {
        program.leaf(POLL);
        program.call(PIPELINE, |p| MODULES.iter().for_each(|m| p.leaf(*m)));
    }
    let root = RootChoice::Function(FunctionId(PIPELINE));
    assert_eq!(program.suggested(), Ok(root));
}

#[test]
fn a_pass_of_an_unmeasured_loop_begins_after_its_longest_pause() {
    let mut program = Program::default();
    // Attached in the middle of a pass.
    program.leaf(MODULES[2]);
    for _ in 0..20 {
        program.pause(5000);
        MODULES.iter().for_each(|m| program.leaf(*m));
    }
    let head = RootChoice::PollingLoop(FunctionId(MODULES[0]));
    assert_eq!(program.suggested(), Ok(head));
}

#[test]
fn pauses_that_are_alike_suggest_nothing() {
    let mut program = Program::default();
    for _ in 0..20 {
        MODULES.iter().for_each(|m| program.leaf(*m));
    }
    let error = program.suggested().expect_err("nothing tells them apart");
    assert_eq!(error.candidates().len(), MODULES.len());
}

#[test]
fn the_loop_is_found_when_asked_for_although_a_function_encloses_the_calls() {
    let mut program = Program::default();
    for _ in 0..20 {
        program.pause(5000);
        program.leaf(POLL);
        program.call(PIPELINE, |p| MODULES.iter().for_each(|m| p.leaf(*m)));
    }
    let found = program.search().suggest_loop().map(|root| root.choice);
    assert_eq!(found, Ok(RootChoice::PollingLoop(FunctionId(POLL))));
}

#[test]
fn a_single_function_is_its_own_root_and_no_call_is_none() {
    let mut program = Program::default();
    assert_eq!(program.suggested(), Err(RootError::NoCalls));
    program.leaf(POLL);
    program.leaf(POLL);
    let root = RootChoice::Function(FunctionId(POLL));
    assert_eq!(program.suggested(), Ok(root));
}
