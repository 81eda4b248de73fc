use super::*;
use crate::slot::Slot;
use crate::stacks::Below;

/// A thread that calls one path after another.
struct Program {
    tree: Tree,
    index: Index,
    calls: u64,
}

impl Program {
    fn new(nodes_max: usize) -> Program {
        Program {
            tree: Tree::with_bound(nodes_max),
            index: Index::new(&[], &[]),
            calls: 0,
        }
    }

    /// Each calls the next; the innermost takes so long, the others nothing.
    fn path(&mut self, functions: &[u32], ticks: i64) {
        let mut open: Vec<Frame> = Vec::new();
        for function in functions {
            let enter = Enter {
                function: FunctionId(*function),
                tsc: 0,
                open: &open,
                tail_of: None,
                tail_from: None,
                after_gap: false,
            };
            let mark = self.tree.enter(&enter, &self.index, true);
            open.push(frame(*function, mark));
            self.calls += 1;
        }
        let mut callee_ticks = 0;
        for frame in open.into_iter().rev() {
            self.tree.left(frame.mark);
            self.tree.call(&Call {
                function: frame.function,
                mark: frame.mark,
                entry: 0,
                inclusive: ticks,
                callee_ticks,
                callees: 0.into(),
                descendants: 0.into(),
                fused: false,
                suspended_ticks: 0,
                tail: false,
            });
            callee_ticks = ticks;
        }
    }

    fn settled(mut self) -> Tree {
        self.tree.settle();
        self.tree
    }
}

fn frame(function: u32, mark: Mark) -> Frame {
    Frame {
        entry: 0,
        below: Below::default(),
        rsp: 0,
        function: FunctionId(function),
        mark,
        escaped: false,
        fused: false,
        left_tsc: None,
        was_left: false,
        slot: Slot::NONE,
    }
}

/// The innermost node of a path, if the tree has it.
fn node<'a>(tree: &'a Tree, functions: &[u32]) -> Option<&'a Node> {
    let mut parent = Parent::Root;
    let mut found = None;
    for function in functions {
        let is_it = |n: &&Node| n.parent == parent && n.function.0 == *function;
        let at = tree.nodes().iter().position(|n| is_it(&n))?;
        (parent, found) = (Parent::Node(NodeIx(at as u32)), tree.nodes().get(at));
    }
    found
}

#[test]
fn a_path_that_comes_late_and_takes_long_is_kept() {
    let mut program = Program::new(64);
    // More paths than there is room for, each of little time.
    (0..1000).for_each(|n| program.path(&[0, 1000 + n], 1));
    for n in 0..200 {
        program.path(&[0, 1, 2, 3], 1_000);
        program.path(&[0, 3000 + n], 1);
    }
    let calls = program.calls;
    let tree = program.settled();
    let late = node(&tree, &[0, 1, 2, 3]).expect("the late path");
    assert_eq!((late.entries, late.calls, late.ticks), (200, 200, 200_000));
    let kept = tree.nodes().iter().filter(|n| n.parent != Parent::Beyond);
    assert!(kept.count() <= 64);
    assert!(tree.dropped_paths() >= 1000, "{}", tree.dropped_paths());
    let sum = |what: fn(&Node) -> i128| tree.nodes().iter().map(what).sum::<i128>();
    assert_eq!(sum(|n| n.entries.into()), calls.into());
    assert_eq!(sum(|n| n.calls.into()), calls.into());
    assert_eq!(sum(|n| n.self_ticks), 200 * 1_000 + 1000 + 200);
}

#[test]
fn a_dropped_recursion_is_counted_once() {
    let mut program = Program::new(8);
    // Each call of 1 takes 10 ticks, all of them in the innermost.
    (0..50).for_each(|n| program.path(&[100 + n, 1, 2, 1, 2, 1], 10));
    (0..50).for_each(|n| program.path(&[1000 + n], 20));
    let tree = program.settled();
    assert!(tree.dropped_paths() > 0);
    let of_1 = tree.nodes().iter().filter(|n| n.function.0 == 1);
    let beyond = of_1.clone().filter(|n| n.parent == Parent::Beyond);
    let beyond: Vec<_> = beyond.collect();
    assert_eq!(beyond.len(), 1);
    assert!(beyond[0].outer_calls < beyond[0].calls);
    // 50 x 10 is all the time there was.
    assert!(beyond[0].ticks <= 500, "{}", beyond[0].ticks);
    let own: i128 = of_1.map(|n| n.self_ticks).sum();
    assert_eq!(own, 500);
}

/// The time of a call beyond the bounds is a part of that of its outermost one, which is dropped later.
#[test]
fn a_dropped_caller_of_a_call_beyond_is_counted_once() {
    let mut program = Program::new(2);
    // There is no room for the inner call of 1: both before it are open.
    program.path(&[1, 2, 1], 10);
    (0..50).for_each(|n| program.path(&[1000 + n], 20));
    let tree = program.settled();
    let of_1 = tree.nodes().iter().filter(|n| n.function.0 == 1);
    let of_1: Vec<_> = of_1.collect();
    assert_eq!((of_1.len(), of_1[0].parent), (1, Parent::Beyond));
    assert_eq!((of_1[0].calls, of_1[0].outer_calls), (2, 1));
    assert!(of_1[0].ticks == 10 && of_1[0].lacks_time, "{:?}", of_1[0]);
}

#[test]
fn an_open_path_stays_and_its_place_is_its_own() {
    let mut program = Program::new(8);
    let mut open: Vec<Frame> = Vec::new();
    for function in 1..4 {
        let enter = Enter {
            function: FunctionId(function),
            tsc: 0,
            open: &open,
            tail_of: None,
            tail_from: None,
            after_gap: false,
        };
        let mark = program.tree.enter(&enter, &program.index, true);
        open.push(frame(function, mark));
    }
    (0..100).for_each(|n| program.path(&[1000 + n], 7));
    let mark = open[2].mark;
    assert_eq!(program.tree.node(NodeIx(mark.node)).function, FunctionId(3));
    let tree = program.settled();
    assert!(node(&tree, &[1, 2, 3]).is_some());
    assert!(tree.dropped_paths() > 0);
}
