//! Slicers that run in other processes: found by the maps that those hold open, so that nothing is
//! left in a file system when one is killed.
use super::{LoadError, control, counts};
use hopscope_event::slice::Counters;
use libbpf_rs::{MapCore, MapHandle, MapType};
use std::fs;
use std::path::Path;

pub struct Running {
    pub pid: u32,
    control: MapHandle,
    cpus: MapHandle,
    /// NetSlice's receive buffer size: packets under way at once.
    pub slots: u32,
    pub ring_bytes: u32,
}

/// Settings that may be changed, as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub is_enabled: bool,
    pub min_latency_ns: u64,
}

/// All of this machine that may be looked at; by process.
pub fn running() -> Vec<Running> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut found: Vec<Running> = pids.filter_map(of_process).collect();
    found.sort_unstable_by_key(|running| running.pid);
    found
}

fn of_process(pid: u32) -> Option<Running> {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let (mut control, mut cpus, mut slots, mut ring_bytes) = (None, None, None, None);
    for fd in fds.flatten() {
        let target = fs::read_link(fd.path());
        if !target.is_ok_and(|target| target == Path::new("anon_inode:bpf-map")) {
            continue;
        }
        let Some(map) = map_of(pid, &fd.file_name().to_string_lossy()) else {
            continue;
        };
        match map.name().to_str() {
            Some("hopslice.bss") => control = Some(map),
            Some("cpus") if map.map_type() == MapType::PercpuArray => cpus = Some(map),
            Some("slots") => slots = Some(map.max_entries()),
            Some("ring") => ring_bytes = Some(map.max_entries()),
            _ => {}
        }
    }
    Some(Running {
        pid,
        control: control?,
        cpus: cpus?,
        slots: slots?,
        ring_bytes: ring_bytes?,
    })
}

/// proc(5): the descriptor's information has the map's number.
fn map_of(pid: u32, fd: &str) -> Option<MapHandle> {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("map_id:"))?;
    MapHandle::from_map_id(id.trim().parse().ok()?).ok()
}

impl Running {
    /// # Errors
    /// It has ended, or its maps may not be read.
    pub fn settings(&self) -> Result<Settings, LoadError> {
        let value = control::read(&self.control)?;
        let mut min_latency = [0; 8];
        min_latency.copy_from_slice(&value[control::MIN_LATENCY..control::MIN_LATENCY + 8]);
        Ok(Settings {
            is_enabled: control::is_enabled(&value),
            min_latency_ns: u64::from_ne_bytes(min_latency),
        })
    }

    /// # Errors
    /// As [`Running::settings`].
    pub fn counters(&self) -> Result<Counters, LoadError> {
        counts::of_map(&self.cpus)
    }

    /// # Errors
    /// As [`Running::settings`].
    pub fn set_enabled(&self, is_enabled: bool) -> Result<(), LoadError> {
        control::enable(&self.control, is_enabled)
    }

    /// # Errors
    /// As [`Running::settings`].
    pub fn set_min_latency(&self, min_latency_ns: u64) -> Result<(), LoadError> {
        control::set(
            &self.control,
            control::MIN_LATENCY,
            &min_latency_ns.to_ne_bytes(),
        )
    }
}
