//! Slicers that run in other processes, by their maps.
use super::{SliceError, control, counts};
use hopscope_bpf::open_maps;
use hopscope_event::slice::Counters;
use libbpf_rs::{MapCore, MapHandle, MapType};

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
    open_maps::by_process(Running::of)
}

impl Running {
    fn of(pid: u32, maps: Vec<MapHandle>) -> Option<Running> {
        let (mut control, mut cpus, mut slots, mut ring_bytes) = (None, None, None, None);
        for map in maps {
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

    /// # Errors
    /// It has ended, or its maps may not be read.
    pub fn settings(&self) -> Result<Settings, SliceError> {
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
    pub fn counters(&self) -> Result<Counters, SliceError> {
        counts::read(&self.cpus)
    }

    /// # Errors
    /// As [`Running::settings`].
    pub fn set_enabled(&self, is_enabled: bool) -> Result<(), SliceError> {
        control::enable(&self.control, is_enabled)
    }

    /// # Errors
    /// As [`Running::settings`].
    pub fn set_min_latency(&self, min_latency_ns: u64) -> Result<(), SliceError> {
        control::set(
            &self.control,
            control::MIN_LATENCY,
            &min_latency_ns.to_ne_bytes(),
        )
    }
}
