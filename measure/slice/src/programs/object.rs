//! The compiled programs, opened, fitted to the options and loaded.
use super::config::Config;
use super::hooks::{self, Offer};
use super::{SliceError, SlicerOptions};
use crate::filter::{Scratch, place_in_object};
use crate::kinds::{HookKind, try_kind};
use hopscope_bpf::{BpfError, compiled, object};
use hopscope_event::slice::Point;
use libbpf_rs::{Object, OpenObject};

static OBJECT: &[u8] = compiled!("slice");

/// `bpf/state.h`
const WAYS: u32 = 4;
/// `bpf/connections.h`
const CONNECTIONS: u32 = 16_384;
/// `bpf/filter.h`
const FILTER_MARKER: [u64; 2] = [0x5f37_59df_0000_00b7, 0x0bad_f00d_0000_00b7];
pub const FILTER_INSNS: usize = 1024;
/// Where a filter's own memory lies: behind the packet's bytes.
pub const FILTER_SCRATCH: Scratch = Scratch::Value(256);

/// Loads the programs of `chosen`; the others cost nothing.
pub(super) fn load(
    options: &SlicerOptions,
    chosen: &[Offer],
    extra: &[&str],
    stamped: &[Point],
) -> Result<Object, SliceError> {
    let mut bytes = OBJECT.to_vec();
    if let Some(filter) = &options.filter {
        place_in_object(&mut bytes, FILTER_MARKER, FILTER_INSNS, filter).map_err(|error| {
            BpfError::Call {
                what: "placing the filter",
                why: error.to_string(),
            }
        })?;
    }
    let in_order = chosen
        .iter()
        .any(|offer| hooks::PER_CALL.contains(&offer.hook.program));
    // Root without the capabilities is refused with the same number as a program of a kind that this kernel does not
    // run.
    let may_load = || try_kind(HookKind::RawTp).is_ok();
    Ok(object::load(&bytes, "hopslice", may_load, |open| {
        for mut program in open.progs_mut() {
            let wanted = chosen
                .iter()
                .any(|offer| program.name() == offer.hook.program);
            let is_extra = extra.iter().any(|name| program.name() == *name);
            program.set_autoload(wanted || is_extra);
        }
        fit(open, options, stamped, in_order)
    })?)
}

fn fit(
    open: &mut OpenObject,
    options: &SlicerOptions,
    stamped: &[Point],
    udp_in_order: bool,
) -> Result<(), BpfError> {
    let sized = |what| BpfError::call(what);
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "events" => {
                let cpus = libbpf_rs::num_possible_cpus().map_err(sized("events"))?;
                map.set_max_entries(cpus as u32).map_err(sized("events"))?;
            }
            "buckets" => map
                .set_max_entries(options.slots / WAYS)
                .map_err(sized("buckets"))?,
            "slots" => map.set_max_entries(options.slots).map_err(sized("slots"))?,
            "ring" => map
                .set_max_entries(options.ring_bytes)
                .map_err(sized("ring"))?,
            "connections" if options.tgid.is_some() || options.comm.is_some() => map
                .set_max_entries(CONNECTIONS)
                .map_err(sized("connections"))?,
            "bytes" if options.snap > 0 => {
                map.set_max_entries(options.slots).map_err(sized("bytes"))?
            }
            _ => {}
        }
    }
    let config = Config::of(options, stamped, udp_in_order);
    object::set_rodata(open, &config.to_bytes())
}
