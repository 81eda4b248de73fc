//! Which hooks can stamp which point, and which of them this kernel has.
use super::backend::Backend;
use super::{SliceError, SlicerOptions};
use crate::kinds::{HookKind, try_kind};
use hopscope_event::slice::Point;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Func, Typedef};
use std::collections::HashMap;

pub(super) mod table;

pub(super) use table::PER_CALL;

/// One program and the hook it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    /// Of the program in the object.
    pub program: &'static str,
    /// As people name it: `tp_btf/net_dev_queue`.
    pub name: &'static str,
    pub kind: Attachment,
    pub point: Point,
    /// Not: it ends the record of a packet that the kernel gives up.
    pub stamps: bool,
    /// Not: no packet of TCP's is stamped or ended there.
    pub serves_tcp: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attachment {
    /// Tracepoint of this name.
    Tracepoint(&'static str),
    /// The same, its arguments bare words.
    RawTracepoint(&'static str),
    /// Entry or return of the function of this name.
    Function(&'static str),
    Cgroup,
}

impl Hook {
    /// The poorest backend that has it.
    pub const fn backend(&self) -> Backend {
        match self.kind {
            Attachment::Function(_) => Backend::Fentry,
            Attachment::Tracepoint(_) | Attachment::Cgroup => Backend::Tracepoint,
            Attachment::RawTracepoint(_) => Backend::Raw,
        }
    }
}

/// A hook, and why it cannot be used here (`None`: it can).
#[derive(Debug, Clone)]
pub struct Offer {
    pub hook: Hook,
    pub missing: Option<String>,
}

/// The functions that a program needs from the kernel.
const KFUNC_CGROUP: &str = "bpf_cast_to_kern_ctx";
const KFUNC_RAW: &str = "bpf_rdonly_cast";

/// What this kernel's type information says of every hook. Attaching may still fail.
///
/// # Errors
/// The kernel has no type information.
pub fn offers() -> Result<Vec<Offer>, SliceError> {
    let mut offers = named(&types()?);
    refuse_functions(&mut offers);
    Ok(offers)
}

/// Reading them takes some 20 ms.
pub(super) fn types() -> Result<Btf<'static>, SliceError> {
    Btf::from_vmlinux().map_err(|error| SliceError::NoBtf(error.to_string()))
}

/// What the names alone say.
fn named(btf: &Btf<'_>) -> Vec<Offer> {
    let mut names = Names {
        btf,
        tracepoints: HashMap::new(),
        has_cast: None,
    };
    let offer = |hook: Hook| Offer {
        missing: names.missing(&hook),
        hook,
    };
    table::all().map(offer).collect()
}

/// As [`offers`], as far as the options need it.
pub(super) fn offers_for(btf: &Btf<'_>, options: &SlicerOptions) -> Vec<Offer> {
    let mut offers = named(btf);
    try_functions(&mut offers, options);
    offers
}

/// Whether functions can be had is tried only where one would be used: it takes some 40 ms.
pub(super) fn try_functions(offers: &mut [Offer], options: &SlicerOptions) {
    let chosen = choose(offers, options);
    if chosen
        .iter()
        .any(|offer| offer.missing.is_none() && is_function(offer))
    {
        refuse_functions(offers);
    }
}

fn is_function(offer: &Offer) -> bool {
    matches!(offer.hook.kind, Attachment::Function(_))
}

/// Type information names the functions of kernels, too, that let no program run at one.
fn refuse_functions(offers: &mut [Offer]) {
    let mut kinds = [HookKind::Fentry, HookKind::Fexit].into_iter();
    let refused = kinds.find_map(|kind| {
        let error = try_kind(kind).err()?;
        Some(format!("no {} programs: {error}", kind.name()))
    });
    for offer in offers.iter_mut().filter(|offer| is_function(offer)) {
        offer.missing = offer.missing.take().or_else(|| refused.clone());
    }
}

/// Which hooks the options' backend would use: for each point those of the first backend that has one.
pub(super) fn choose(offers: &[Offer], options: &SlicerOptions) -> Vec<Offer> {
    let order: &[Backend] = match options.backend {
        None => &[Backend::Tracepoint, Backend::Fentry],
        Some(Backend::Fentry) => &[Backend::Fentry, Backend::Tracepoint],
        Some(Backend::Tracepoint) => &[Backend::Tracepoint],
        Some(Backend::Raw) => &[Backend::Raw],
    };
    let used = |offers: Vec<&Offer>| -> Vec<Offer> {
        let of = |backend: &Backend| -> Vec<Offer> {
            let of_backend = offers.iter().filter(|o| o.hook.backend() == *backend);
            of_backend.map(|offer| (*offer).clone()).collect()
        };
        let has_one = |offers: &Vec<Offer>| offers.iter().any(|offer| offer.missing.is_none());
        // Where there is none at all, the reasons of each.
        let best = order.iter().map(of).find(has_one);
        best.unwrap_or_else(|| order.iter().flat_map(of).collect())
    };
    let wanted = offers
        .iter()
        .filter(|offer| offer.hook.serves_tcp || !options.only_tcp);
    let (stamping, ending): (Vec<&Offer>, Vec<&Offer>) =
        wanted.partition(|offer| offer.hook.stamps);
    let mut chosen: Vec<Offer> = Vec::new();
    for point in &options.points {
        let of_point = stamping.iter().filter(|o| o.hook.point == *point);
        chosen.extend(used(of_point.copied().collect()));
    }
    chosen.extend(used(ending));
    chosen
}

/// Each is looked for once, since that takes a walk through all types.
struct Names<'a> {
    btf: &'a Btf<'a>,
    tracepoints: HashMap<&'static str, bool>,
    has_cast: Option<bool>,
}

impl Names<'_> {
    fn missing(&mut self, hook: &Hook) -> Option<String> {
        match hook.kind {
            Attachment::Tracepoint(name) => self.no_tracepoint(name),
            Attachment::RawTracepoint(name) => self.no_cast().or_else(|| self.no_tracepoint(name)),
            Attachment::Function(name) => {
                let there = self.has_function(name);
                (!there).then(|| format!("this kernel has no function {name}"))
            }
            Attachment::Cgroup => {
                let there = self.has_function(KFUNC_CGROUP);
                (!there).then(|| format!("this kernel has no {KFUNC_CGROUP} (Linux 6.2)"))
            }
        }
    }

    fn has_function(&self, name: &str) -> bool {
        self.btf.type_by_name::<Func<'_>>(name).is_some()
    }

    fn no_cast(&mut self) -> Option<String> {
        let there = self
            .has_cast
            .unwrap_or_else(|| self.has_function(KFUNC_RAW));
        self.has_cast = Some(there);
        (!there).then(|| format!("this kernel has no {KFUNC_RAW} (Linux 6.2)"))
    }

    fn no_tracepoint(&mut self, name: &'static str) -> Option<String> {
        let btf = self.btf;
        let there = self.tracepoints.entry(name).or_insert_with(|| {
            let name = format!("btf_trace_{name}");
            btf.type_by_name::<Typedef<'_>>(&name).is_some()
        });
        (!*there).then(|| format!("this kernel has no tracepoint {name}"))
    }
}

/// Names of the kernel's reasons to drop a packet, by value; empty where it does not tell.
pub(super) fn drop_reasons(btf: &Btf<'_>) -> Vec<String> {
    let Some(reasons) = btf.type_by_name::<Enum<'_>>("skb_drop_reason") else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for reason in reasons.iter() {
        let value = usize::try_from(reason.value).ok().filter(|v| *v < 1024);
        if let (Some(value), Some(name)) = (value, reason.name) {
            if names.len() <= value {
                names.resize(value + 1, String::new());
            }
            let name = name.to_string_lossy();
            names[value] = name.trim_start_matches("SKB_DROP_REASON_").to_owned();
        }
    }
    names
}
