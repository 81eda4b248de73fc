//! The compiled programs, loaded and attached.
use super::contract::Config;
use crate::echo::{EchoError, KernelPlan};
use libbpf_rs::{Link, MapCore, MapHandle, Object, ObjectBuilder, PrintLevel};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/echo.bpf.o"));

/// libbpf prints the verifier's words to one place for the whole process.
static WORDS: Mutex<String> = Mutex::new(String::new());

fn keep(_: PrintLevel, line: String) {
    if let Ok(mut words) = WORDS.lock() {
        words.push_str(&line);
    }
}

/// The end of what the verifier said, where the reason is.
fn words() -> String {
    let words = WORDS.lock().map(|mut words| std::mem::take(&mut *words));
    let words = words.unwrap_or_default();
    let is_telling = |line: &&str| !line.trim().is_empty() && !line.starts_with("processed");
    let mut last: Vec<&str> = words.lines().rev().filter(is_telling).take(6).collect();
    last.reverse();
    last.join(" | ")
}

pub(super) fn load(config: &Config) -> Result<Object, EchoError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let opened = ObjectBuilder::default()
        .name("hopecho")
        .and_then(|builder| builder.open_memory(OBJECT));
    let mut open = opened.map_err(EchoError::bpf("opening them"))?;
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().ends_with(".rodata") {
            map.set_initial_value(&config.to_bytes())
                .map_err(EchoError::bpf("configuring them"))?;
        }
    }
    open.load().map_err(|error| EchoError::Bpf {
        what: "loading",
        why: match words() {
            said if said.is_empty() => error.to_string(),
            said => format!("{error}: {said}"),
        },
    })
}

pub(super) fn map(object: &Object, name: &str) -> Result<MapHandle, EchoError> {
    let maps = object.maps();
    let found = maps.into_iter().find(|map| map.name() == name);
    let found = found.ok_or_else(|| EchoError::Bpf {
        what: "looking for a map",
        why: format!("there is no {name}"),
    })?;
    MapHandle::try_from(&found).map_err(EchoError::bpf("opening a map"))
}

/// The verdict first: a socket that is put into the map gets the program that is there then.
pub(super) fn attach(object: &Object, plan: &KernelPlan) -> Result<Link, EchoError> {
    let servers = map(object, "servers")?;
    for program in object.progs_mut() {
        if program.name() == "echo_verdict" {
            program
                .attach_sockmap(servers.as_fd().as_raw_fd())
                .map_err(EchoError::bpf("attaching the verdict"))?;
        }
    }
    let refused = |why: String| EchoError::Cgroup {
        cgroup: plan.cgroup.display().to_string(),
        why,
    };
    let cgroup = File::open(&plan.cgroup).map_err(|error| refused(error.to_string()))?;
    let mut programs = object.progs_mut();
    let sockops = programs.find(|program| program.name() == "echo_sockops");
    let sockops = sockops.ok_or_else(|| refused("there is no program for it".into()))?;
    sockops
        .attach_cgroup(cgroup.as_raw_fd())
        .map_err(|error| refused(error.to_string()))
}
