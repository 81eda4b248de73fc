//! Accelerators that run in other processes, by their maps.
use super::control::{self, Control};
use super::{Counts, Ends, PlacedThreads, SpliceError, counts, ends};
use hopscope_bpf::open_maps;
use libbpf_rs::{MapCore, MapHandle, MapType};
use std::os::fd::AsFd;

pub struct Running {
    pub pid: u32,
    control: MapHandle,
    counts: MapHandle,
    socks: MapHandle,
    gathered: MapHandle,
    met: MapHandle,
    watched: MapHandle,
    ends: MapHandle,
    /// Where threads may be placed on a processor.
    pub placed: Option<PlacedThreads>,
    pub ports: Vec<u16>,
    pub connections_max: u32,
    pub limit_bytes: u64,
    pub has_guard: bool,
    pub verifies: bool,
}

/// All of this machine that may be looked at; by process.
pub fn running() -> Vec<Running> {
    open_maps::by_process(Running::of_process)
}

impl Running {
    fn of_process(pid: u32, maps: Vec<MapHandle>) -> Option<Running> {
        let (mut settings, mut totals, mut socks) = (None, None, None);
        let mut gathered = None;
        let (mut met, mut watched, mut ends) = (None, None, None);
        let (mut placed, mut pairs) = (None, None);
        for map in maps {
            match map.name().to_str() {
                Some("splice.bss") => settings = Some(map),
                Some("splice_counts") if map.map_type() == MapType::PercpuArray => {
                    totals = Some(map);
                }
                Some("splice_socks") => socks = Some(map),
                Some("splice_gathered") => gathered = Some(map),
                Some("splice_met") => met = Some(map),
                Some("splice_watched") => watched = Some(map),
                Some("splice_ends") => ends = Some(map),
                Some("splice_placed") => placed = Some(map),
                Some("splice_pairs") => pairs = Some(map),
                _ => {}
            }
        }
        let mut found = Running::of(settings?, totals?, socks?, gathered?, met?, watched?, ends?)?;
        if let (Some(placed), Some(pairs)) = (placed, pairs) {
            found.placed = Some(PlacedThreads::new(placed, pairs));
        }
        Some(found).filter(|found| found.pid == pid)
    }

    /// The process that started it is the one that is named; its keeper holds the same maps.
    fn of(
        control: MapHandle,
        counts: MapHandle,
        socks: MapHandle,
        gathered: MapHandle,
        met: MapHandle,
        watched: MapHandle,
        ends: MapHandle,
    ) -> Option<Running> {
        let set: Control = control::read(&control).ok()?;
        Some(Running {
            pid: set.pid,
            ports: set.ports,
            connections_max: u32::try_from(set.ends_max / 2).unwrap_or(0),
            limit_bytes: set.limit_bytes,
            has_guard: set.guard,
            verifies: set.verify,
            control,
            counts,
            socks,
            gathered,
            met,
            watched,
            ends,
            placed: None,
        })
    }

    /// # Errors
    /// It has ended, or its maps may not be read.
    pub fn counts(&self) -> Result<Counts, SpliceError> {
        let mut counts = counts::of_map(&self.counts)?;
        if let Some(placed) = &self.placed {
            placed.add_to(&mut counts);
        }
        Ok(counts)
    }

    /// Sockets that are redirected now.
    ///
    /// # Errors
    /// As [`Running::counts`].
    pub fn ends(&self) -> Result<i64, SpliceError> {
        Ok(control::read(&self.control)?.ends_now)
    }

    /// Sockets that the map of sockets still holds, and clients that wait to be told their server.
    pub fn entries(&self) -> (usize, usize) {
        (self.socks.keys().count(), self.met.keys().count())
    }

    /// Ends of which sums are kept.
    pub fn watched(&self) -> usize {
        self.watched.keys().count()
    }

    /// A socket is itself again. Bytes that lie in its queue are lost, so there must be none, and no
    /// more may come: after [`Running::stop`], once no send that began before is under way at the other end.
    pub fn release(&self, cookie: u64) {
        // It may have left by itself.
        let _ = self.socks.delete(&cookie.to_ne_bytes());
    }

    /// Every message takes TCP from now on; redirected bytes can still be read.
    ///
    /// # Errors
    /// As [`Running::counts`].
    pub fn stop(&self) -> Result<(), SpliceError> {
        control::stop(&self.control)
    }

    /// # Errors
    /// The kernel refuses the program that looks.
    pub fn ends_seen(&self) -> Result<Ends, SpliceError> {
        Ends::of(self.ends.as_fd())
    }

    /// Numbers of the maps of ends and of readers that peek, for [`tell`](super::tell).
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn edge_maps(&self) -> Result<[u32; 2], SpliceError> {
        Ok([ends::number(&self.ends)?, ends::number(&self.gathered)?])
    }
}
