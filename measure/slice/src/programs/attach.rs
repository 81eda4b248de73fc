//! Programs at their hooks, and what they count.
use super::backend::Backend;
use super::config::RawCosts;
use super::control;
use super::hooks::{self, Attachment, Hook, Offer, choose};
use super::ring::{self, Drained};
use super::{Choose, Costs, SliceError, SlicerOptions, counts, object, perf_event};
use hopscope_bpf::run_stats::{self, ProgramRuns};
use hopscope_bpf::{self as bpf, BpfError};
use hopscope_event::slice::{Counters, HookEntry, Point, SliceEvent};
use libbpf_rs::{Link, MapCore, Object, ProgramMut};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

/// Programs in the kernel; attached while [`Attached`] lives.
pub struct Slicer {
    object: Object,
    options: SlicerOptions,
    chosen: Vec<Offer>,
    hooks: Vec<HookEntry>,
    drop_reasons: Vec<String>,
    links: Vec<Link>,
    /// Count while they are open.
    _events: Vec<OwnedFd>,
    /// Left out before this recording.
    missed_before: Vec<u64>,
}

/// `bpf/calibrate.bpf.c`: stamps at one place, of the points from [`EMPTY_FIRST`] on.
pub(crate) const EMPTY: &[&str] = &["empty_0", "empty_1", "empty_2", "empty_3"];
pub(crate) const EMPTY_FIRST: usize = 20;
pub(crate) const CLOCK_ONLY: &[&str] = &[
    "clock_only_0",
    "clock_only_1",
    "clock_only_2",
    "clock_only_3",
];

/// Hooks whose programs run.
pub type Attached = usize;

impl Slicer {
    /// Loads and attaches the programs that the points ask for; they do nothing before [`Slicer::start`].
    ///
    /// # Errors
    /// The kernel has no type information, no permission, none of the hooks, or refuses a program.
    pub fn load(options: &SlicerOptions) -> Result<Slicer, SliceError> {
        Slicer::load_with(options, &[])
    }

    /// The same, with the programs that constants are measured by.
    ///
    /// # Errors
    /// As [`Slicer::load`].
    pub(crate) fn load_to_calibrate(options: &SlicerOptions) -> Result<Slicer, SliceError> {
        let mut slicer = Slicer::load_with(options, &[EMPTY, CLOCK_ONLY].concat())?;
        slicer.detach();
        Ok(slicer)
    }

    fn load_with(options: &SlicerOptions, extra: &[&'static str]) -> Result<Slicer, SliceError> {
        if !options.slots.is_power_of_two() || !(64..=1 << 20).contains(&options.slots) {
            return Err(SliceError::Slots {
                slots: options.slots,
            });
        }
        if !options.ring_bytes.is_power_of_two() || !(4096..=1 << 30).contains(&options.ring_bytes)
        {
            return Err(SliceError::Ring {
                bytes: options.ring_bytes,
            });
        }
        let btf = hooks::types()?;
        let mut all = hooks::offers_for(&btf, options);
        loop {
            let offers = choose(&all, options);
            let mut chosen: Vec<Offer> = offers
                .iter()
                .filter(|o| o.missing.is_none())
                .cloned()
                .collect();
            let stamped: Vec<Point> = stamped(&chosen);
            // One program may serve two points, and is attached once.
            let mut programs = std::collections::HashSet::new();
            chosen.retain(|offer| programs.insert(offer.hook.program));
            if stamped.is_empty() {
                return Err(SliceError::NoHook {
                    backend: options.backend.map_or("auto", Backend::name),
                    why: reasons(&offers),
                });
            }
            let object = object::load(options, &chosen, extra, &stamped)?;
            let events = match &options.event {
                SliceEvent::Time => Vec::new(),
                SliceEvent::Counter(name) => perf_event::open(&object, name)?,
            };
            let mut slicer = Slicer {
                object,
                options: options.clone(),
                hooks: entries(options, &offers),
                chosen,
                drop_reasons: hooks::drop_reasons(&btf),
                links: Vec::new(),
                _events: events,
                missed_before: Vec::new(),
            };
            match slicer.attach() {
                Ok(_) => {
                    slicer.set_min_latency(options.min_latency_ns)?;
                    return Ok(slicer);
                }
                // The kernel has the hook by name and refuses it: do without.
                Err((at, why)) => {
                    let refused = slicer.chosen[at].hook;
                    for offer in all.iter_mut().filter(|o| o.hook == refused) {
                        offer.missing = Some(format!("cannot be attached: {why}"));
                    }
                    hooks::try_functions(&mut all, options);
                }
            }
        }
    }

    /// Points that are stamped, with the reason where one that was asked for is not.
    pub fn hooks(&self) -> &[HookEntry] {
        &self.hooks
    }

    /// Names of the kernel's reasons to drop a packet, by value; empty where it does not tell.
    pub fn drop_reasons(&self) -> &[String] {
        &self.drop_reasons
    }

    pub fn points(&self) -> Vec<Point> {
        let stamped = self.hooks.iter().filter(|hook| hook.missing.is_none());
        stamped.map(|hook| hook.point).collect()
    }

    /// The richest of which a hook is used.
    pub fn backend(&self) -> Backend {
        let used = self.chosen.iter().map(|offer| offer.hook.backend());
        used.min().unwrap_or(Backend::Tracepoint)
    }

    pub fn options(&self) -> &SlicerOptions {
        &self.options
    }

    /// Attaches every program.
    ///
    /// # Errors
    /// Of the first that cannot be attached; none is attached then.
    pub fn start(&mut self) -> Result<Attached, SliceError> {
        self.set_enabled(true)?;
        self.resume()
    }

    /// Attaches every program again, whether they are enabled or not.
    ///
    /// # Errors
    /// As [`Slicer::start`].
    pub fn resume(&mut self) -> Result<Attached, SliceError> {
        let attached = self.attach().map_err(|(at, why)| {
            let hook = self.chosen[at].hook;
            SliceError::Attach {
                point: hook.point,
                hook: hook.name,
                why,
            }
        })?;
        control::all_attached(&self.control()?, true)?;
        Ok(attached)
    }

    /// Attaches programs that are of no hook's; they stay while the links live.
    ///
    /// # Errors
    /// The kernel refuses one of them.
    pub(crate) fn attach_extra(&mut self, names: &[&str]) -> Result<Vec<Link>, SliceError> {
        let mut links = Vec::with_capacity(names.len());
        for name in names {
            let link = bpf::object::program(&self.object, name)?.attach();
            links.push(link.map_err(BpfError::call("measuring constants"))?);
        }
        Ok(links)
    }

    /// Detaches every program: hooks cost nothing any more.
    pub fn detach(&mut self) {
        // Where this fails there is no map, and no program sees anything.
        let _ = self
            .control()
            .and_then(|map| control::all_attached(&map, false));
        self.links.clear();
    }

    fn attach(&mut self) -> Result<Attached, (usize, String)> {
        if !self.links.is_empty() {
            return Ok(self.links.len());
        }
        for (at, offer) in self.chosen.iter().enumerate() {
            match self.link(&offer.hook) {
                Ok(link) => self.links.push(link),
                Err(why) => {
                    self.links.clear();
                    return Err((at, why));
                }
            }
        }
        Ok(self.links.len())
    }

    fn link(&self, hook: &Hook) -> Result<Link, String> {
        let program = bpf::object::program(&self.object, hook.program);
        let program = program.map_err(|error| error.to_string())?;
        attach(&program, hook, &self.options)
    }

    /// What the kernel counted so far of each program, with its point; of those of no hook the point
    /// is `None`.
    pub(crate) fn runs(
        &self,
        extra: &[&str],
    ) -> Result<Vec<(Option<Point>, ProgramRuns)>, SliceError> {
        let hooks = self.chosen.iter().filter(|offer| offer.hook.stamps);
        let hooks = hooks.map(|offer| (Some(offer.hook.point), offer.hook.program));
        let extra = extra.iter().map(|name| (None, *name));
        hooks
            .chain(extra)
            .map(|(point, program)| Ok((point, run_stats::read(&self.object, program)?)))
            .collect()
    }

    /// Points, and the hooks of each, with the runs that the kernel left out.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn hooks_with_missed(&self) -> Result<Vec<HookEntry>, SliceError> {
        let mut hooks = self.hooks.clone();
        for (at, (point, runs)) in self.runs(&[])?.iter().enumerate() {
            let before = self.missed_before.get(at).copied().unwrap_or(0);
            for hook in hooks.iter_mut().filter(|hook| Some(hook.point) == *point) {
                *hook.missed_runs.get_or_insert(0) += runs.missed - before;
            }
        }
        Ok(hooks)
    }

    /// # Errors
    /// The kernel refuses to take the value.
    pub fn set_costs(&mut self, costs: Costs) -> Result<(), SliceError> {
        self.set(control::COSTS, &RawCosts::from(costs).to_bytes())
    }

    /// # Errors
    /// The kernel refuses to take the value.
    pub fn set_enabled(&mut self, is_enabled: bool) -> Result<(), SliceError> {
        control::enable(&self.control()?, is_enabled)
    }

    /// Of which namespace [`Choose::Own`] packets are: an inode.
    pub(crate) fn set_own(&mut self, netns: u32) -> Result<(), SliceError> {
        self.set(control::CHOOSE_NETNS, &netns.to_ne_bytes())
    }

    /// Which packets are followed.
    pub(crate) fn set_choose(&mut self, choose: Choose) -> Result<(), SliceError> {
        self.set(control::CHOOSE, &(choose as u32).to_ne_bytes())
    }

    /// Records of packets that were faster are not handed over.
    ///
    /// # Errors
    /// The kernel refuses to take the value.
    pub fn set_min_latency(&mut self, min_latency_ns: u64) -> Result<(), SliceError> {
        self.set(control::MIN_LATENCY, &min_latency_ns.to_ne_bytes())
    }

    fn control(&self) -> Result<impl MapCore, SliceError> {
        Ok(bpf::object::variables(&self.object)?)
    }

    fn set(&self, at: usize, bytes: &[u8]) -> Result<(), SliceError> {
        control::set(&self.control()?, at, bytes)
    }

    /// The counters, once nothing adds to them any more: after [`Slicer::detach`].
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn final_counters(&self) -> Result<Counters, SliceError> {
        bpf::wait_for_programs();
        self.counters()
    }

    /// # Errors
    /// The kernel's map cannot be read.
    pub fn counters(&self) -> Result<Counters, SliceError> {
        counts::read(&bpf::object::map(&self.object, "cpus")?)
    }

    /// Everything is counted from here on. To be called while no program is enabled.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn forget_counts(&mut self) -> Result<(), SliceError> {
        // One that began before would be counted in part.
        bpf::wait_for_programs();
        bpf::per_cpu::clear(&bpf::object::map(&self.object, "cpus")?)?;
        let runs = self.runs(&[])?;
        self.missed_before = runs.iter().map(|(_, runs)| runs.missed).collect();
        Ok(())
    }

    /// A reader of the records that the programs hand over.
    ///
    /// # Errors
    /// The ring cannot be mapped.
    pub fn drain(&self) -> Result<Drained, SliceError> {
        ring::open(&self.object)
    }
}

fn attach(program: &ProgramMut<'_>, hook: &Hook, options: &SlicerOptions) -> Result<Link, String> {
    match hook.kind {
        Attachment::Tracepoint(_) | Attachment::RawTracepoint(_) | Attachment::Function(_) => {
            program.attach().map_err(|e| e.to_string())
        }
        Attachment::Cgroup => {
            let cgroup = File::open(&options.cgroup)
                .map_err(|error| format!("{}: {error}", options.cgroup.display()))?;
            program
                .attach_cgroup(cgroup.as_raw_fd())
                .map_err(|e| e.to_string())
        }
    }
}

fn stamped(chosen: &[Offer]) -> Vec<Point> {
    let mut points: Vec<Point> = chosen
        .iter()
        .filter(|offer| offer.hook.stamps)
        .map(|offer| offer.hook.point)
        .collect();
    points.sort_unstable();
    points.dedup();
    points
}

/// Each reason once.
fn reasons(offers: &[Offer]) -> String {
    let reasons: std::collections::BTreeSet<&str> =
        offers.iter().filter_map(|o| o.missing.as_deref()).collect();
    reasons.into_iter().collect::<Vec<_>>().join("; ")
}

fn entries(options: &SlicerOptions, offers: &[Offer]) -> Vec<HookEntry> {
    let entry = |point: &Point| {
        let of_point = || {
            offers
                .iter()
                .filter(|offer| offer.hook.point == *point && offer.hook.stamps)
        };
        let hooks: Vec<String> = of_point()
            .filter(|offer| offer.missing.is_none())
            .map(|offer| offer.hook.name.to_owned())
            .collect();
        let reasons: Vec<&str> = of_point().filter_map(|o| o.missing.as_deref()).collect();
        HookEntry {
            point: *point,
            missing: hooks.is_empty().then(|| {
                if reasons.is_empty() {
                    "no hook of this backend stamps it".to_owned()
                } else {
                    reasons.join("; ")
                }
            }),
            hooks,
            missed_runs: None,
        }
    };
    options.points.iter().map(entry).collect()
}
