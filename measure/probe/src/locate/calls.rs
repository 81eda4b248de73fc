//! Decodes who calls whom within a file, and which of its functions call what cannot be known.
use super::call_graph::{CallGraph, Edge, Node, To};
use super::functions::Function;
use super::image::Image;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::collections::HashMap;

impl Image {
    /// Who calls whom, decoded on first use.
    pub fn calls(&self) -> &CallGraph {
        self.call_graph.get_or_init(|| CallGraph::of(self))
    }
}

impl CallGraph {
    /// Decodes every function of `image`.
    fn of(image: &Image) -> CallGraph {
        let mut building = Building {
            image,
            graph: CallGraph::default(),
            numbers: HashMap::new(),
            taken: Vec::new(),
        };
        for function in image.functions() {
            let mut node = building.node(function);
            node.address_taken = image.is_pointed_to(function.svma);
            building.graph.nodes.push(node);
        }
        for n in building.taken {
            building.graph.nodes[n].address_taken = true;
        }
        building.graph
    }
}

struct Building<'a> {
    image: &'a Image,
    graph: CallGraph,
    numbers: HashMap<String, u32>,
    taken: Vec<usize>,
}

impl Building<'_> {
    fn node(&mut self, function: &Function) -> Node {
        let mut node = Node::default();
        let entry = function.svma..function.svma + function.size;
        let inside =
            |at: u64| entry.contains(&at) || function.fragments.iter().any(|r| r.contains(&at));
        let mut next = function.svma;
        let mut flows_on = false;
        for range in std::iter::once(&entry).chain(&function.fragments) {
            let Some(bytes) = self.image.bytes(range.clone()) else {
                node.calls_unknown = true;
                continue;
            };
            let mut decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
            let mut ins = Instruction::default();
            let mut before = Mnemonic::INVALID;
            while decoder.can_decode() {
                decoder.decode_out(&mut ins);
                self.instruction(&ins, before, &inside, &mut node);
                before = ins.mnemonic();
            }
            if range.start == entry.start {
                next = ins.next_ip();
                flows_on = matches!(
                    ins.flow_control(),
                    FlowControl::Next | FlowControl::ConditionalBranch
                );
            }
        }
        // Hand-written code that runs on into the next function.
        if flows_on && !inside(next) {
            self.branch_to(next, true, &mut node);
        }
        node
    }

    fn instruction(
        &mut self,
        ins: &Instruction,
        before: Mnemonic,
        inside: &dyn Fn(u64) -> bool,
        node: &mut Node,
    ) {
        match ins.flow_control() {
            FlowControl::Call if ins.code() == Code::Syscall => node.system_call = true,
            FlowControl::Call => self.branch_to(ins.near_branch_target(), false, node),
            FlowControl::IndirectCall => self.through_memory(ins, false, node),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                let target = ins.near_branch_target();
                if !inside(target) {
                    self.branch_to(target, true, node);
                }
            }
            FlowControl::IndirectBranch if !is_switch(ins, before) => {
                self.through_memory(ins, true, node);
            }
            FlowControl::Exception if ins.code() == Code::INVALID => node.calls_unknown = true,
            _ if ins.is_ip_rel_memory_operand() => {
                if let Some(n) = self.function_at(ins.ip_rel_memory_address()) {
                    self.taken.push(n);
                }
            }
            _ => {}
        }
        if ins.is_invalid() {
            node.calls_unknown = true;
        }
    }

    fn function_at(&self, svma: u64) -> Option<usize> {
        let functions = self.image.functions();
        functions.binary_search_by_key(&svma, |f| f.svma).ok()
    }

    /// A call or jump to an address of this file.
    fn branch_to(&mut self, target: u64, tail: bool, node: &mut Node) {
        let functions = self.image.functions();
        let at = functions.partition_point(|f| f.svma <= target);
        let holder = at
            .checked_sub(1)
            .filter(|n| target - functions[*n].svma < functions[*n].size.max(1));
        let to = match (self.image.stub_symbol(target), holder) {
            (Some(name), _) => self.import(name),
            (None, Some(n)) => To::Function(n as u32),
            (None, None) => return unknown(tail, node),
        };
        add(node, Edge { to, tail });
    }

    fn import(&mut self, name: &str) -> To {
        if let Some(n) = self.numbers.get(name) {
            return To::Import(*n);
        }
        let n = self.graph.imports.len() as u32;
        self.graph.imports.push(name.to_owned());
        self.numbers.insert(name.to_owned(), n);
        To::Import(n)
    }

    fn through_memory(&mut self, ins: &Instruction, tail: bool, node: &mut Node) {
        let slot = ins
            .is_ip_rel_memory_operand()
            .then(|| self.image.slot_symbol(ins.ip_rel_memory_address()));
        match slot.flatten() {
            Some(name) => {
                let to = self.import(name);
                add(node, Edge { to, tail });
            }
            None => unknown(tail, node),
        }
    }
}

fn unknown(tail: bool, node: &mut Node) {
    match tail {
        true => node.jumps_unknown = true,
        false => node.calls_unknown = true,
    }
}

fn add(node: &mut Node, edge: Edge) {
    if !node.edges.contains(&edge) {
        node.edges.push(edge);
    }
}

/// A jump table: with `notrack`, which compilers write for nothing else, or to an address that was
/// just added up from the table's entry (position-independent code). A function pointer is never
/// added up. Anything else may be a call in the place of a return.
fn is_switch(ins: &Instruction, before: Mnemonic) -> bool {
    let notrack = ins.segment_prefix() == iced_x86::Register::DS;
    let added = ins.op0_kind() == iced_x86::OpKind::Register && before == Mnemonic::Add;
    notrack || added
}
