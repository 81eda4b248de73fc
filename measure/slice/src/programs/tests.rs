//! How much runs for a packet of TCP's, in instructions: the same on every machine, however busy it is.
//! Needs CAP_BPF and CAP_PERFMON, and says so where it has neither.
use super::hooks::{Offer, choose, table};
use super::{FILTER_INSNS, FILTER_SCRATCH, SliceError, Slicer, SlicerOptions};
use crate::filter::{Filter, Link};
use crate::kinds::cgroup2;
use crate::regions;
use hopscope_bpf::BpfError;

/// Of `seven` and an expression of TCP's on Linux 6.18, when this was written; 1,285 of them count packets that have no slot, and run for those alone.
const INSNS: u32 = 11_571;

fn seven(expression: &str) -> SlicerOptions {
    let regions = regions::preset("seven").unwrap();
    let mut options = SlicerOptions::new(regions::with_ends(&regions::points(&regions)));
    let filter = Filter::compile(expression, Link::Network).unwrap();
    options.filter = Some(filter.to_ebpf(FILTER_INSNS, FILTER_SCRATCH).unwrap());
    options.only_tcp = filter.takes_only_tcp();
    options.cgroup = cgroup2().unwrap_or(options.cgroup);
    options
}

/// Of a kernel that has every hook.
fn chosen(expression: &str) -> Vec<&'static str> {
    let offers: Vec<Offer> = table::all()
        .map(|hook| Offer {
            hook,
            missing: None,
        })
        .collect();
    let chosen = choose(&offers, &seven(expression));
    chosen.iter().map(|offer| offer.hook.program).collect()
}

#[test]
fn hooks_of_other_protocols_are_left_out_where_the_expression_leaves_these_out() {
    let udp = ["tp_sock_recv_length", "tp_consume_skb"];
    let all = chosen("port 80");
    assert!(udp.iter().all(|program| all.contains(program)), "{all:?}");
    let only = chosen("tcp port 80");
    let rest: Vec<&str> = all.into_iter().filter(|p| !udp.contains(p)).collect();
    assert_eq!(only, rest);
}

#[test]
fn instructions_of_a_packet() {
    let slicer = match Slicer::load(&seven("tcp port 80")) {
        Ok(slicer) => slicer,
        Err(error @ (SliceError::Bpf(BpfError::NotAllowed) | SliceError::NoBtf(_))) => {
            eprintln!("not run: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    if let Some(hook) = slicer.hooks().iter().find(|hook| hook.missing.is_some()) {
        eprintln!("not run: this kernel has other hooks: {hook:?}");
        return;
    }
    let runs = slicer.runs(&[]).unwrap();
    let insns: u32 = runs.iter().map(|(_, runs)| runs.insns).sum();
    println!("{insns} instructions: {runs:?}");
    assert!(
        insns <= INSNS + INSNS / 10,
        "{insns} instructions at the hooks of a packet, where there were {INSNS}: {runs:?}"
    );
}
