//! The compiled programs, opened, fitted to the options and loaded.
use super::config::Config;
use super::hooks::{self, Offer};
use super::{LoadError, Options};
use crate::filter::{Scratch, place_in_object};
use crate::kinds::{HookKind, try_kind};
use hopscope_event::slice::Point;
use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel};
use std::sync::Mutex;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slice.bpf.o"));

/// `bpf/state.h`
const WAYS: u32 = 4;
/// `bpf/connections.h`
const CONNECTIONS: u32 = 16_384;
/// `bpf/filter.h`
const FILTER_MARKER: [u64; 2] = [0x5f37_59df_0000_00b7, 0x0bad_f00d_0000_00b7];
pub const FILTER_INSNS: usize = 1024;
/// Where a filter's own memory lies: behind the packet's bytes.
pub const FILTER_SCRATCH: Scratch = Scratch::Value(256);

/// libbpf prints the verifier's words line by line, to one place for the whole process.
static WORDS: Mutex<String> = Mutex::new(String::new());

fn keep(_: PrintLevel, line: String) {
    if let Ok(mut words) = WORDS.lock() {
        words.push_str(&line);
    }
}

/// The lines that say what is wrong, of a log that may have a million.
fn words() -> String {
    let words = WORDS.lock().map(|mut w| std::mem::take(&mut *w));
    let words = words.unwrap_or_default();
    let mut last: Vec<&str> = words
        .lines()
        .filter(|line| {
            !line.is_empty() && !line.contains("-- END PROG") && !line.starts_with("processed")
        })
        .rev()
        .take(12)
        .collect();
    last.reverse();
    last.join(" | ")
}

/// Loads the programs of `chosen`; the others cost nothing.
pub(super) fn load(
    options: &Options,
    chosen: &[Offer],
    extra: &[&str],
    stamped: &[Point],
) -> Result<Object, LoadError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let mut object = OBJECT.to_vec();
    if let Some(filter) = &options.filter {
        place_in_object(&mut object, FILTER_MARKER, FILTER_INSNS, filter).map_err(|error| {
            LoadError::Bpf {
                what: "placing the filter",
                why: error.to_string(),
            }
        })?;
    }
    let mut open = ObjectBuilder::default()
        .name("hopslice")
        .and_then(|builder| builder.open_memory(&object))
        .map_err(LoadError::bpf("opening the programs"))?;
    for mut program in open.progs_mut() {
        let wanted = chosen
            .iter()
            .any(|offer| program.name() == offer.hook.program);
        let is_extra = extra.iter().any(|name| program.name() == *name);
        program.set_autoload(wanted || is_extra);
    }
    let in_order = chosen
        .iter()
        .any(|offer| hooks::PER_CALL.contains(&offer.hook.program));
    fit(&mut open, options, stamped, in_order)?;
    open.load().map_err(|error| match error.kind() {
        // Root without the capabilities is refused with the same number as a program of a kind that
        // this kernel does not run.
        libbpf_rs::ErrorKind::PermissionDenied if try_kind(HookKind::RawTp).is_err() => {
            LoadError::NotAllowed
        }
        _ => LoadError::Refused {
            what: error.to_string(),
            log: words(),
        },
    })
}

fn fit(
    open: &mut OpenObject,
    options: &Options,
    stamped: &[Point],
    udp_in_order: bool,
) -> Result<(), LoadError> {
    let sized = |what| LoadError::bpf(what);
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
            _ if name.ends_with(".rodata") => {
                let bytes = Config::of(options, stamped, udp_in_order).to_bytes();
                map.set_initial_value(&bytes)
                    .map_err(sized("configuration"))?;
            }
            _ => {}
        }
    }
    Ok(())
}
