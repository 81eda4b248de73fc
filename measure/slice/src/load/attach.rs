//! Programs at their hooks, and what they count.
use super::config::{Control, RawCosts};
use super::hooks::{Backend, Hook, Kind, Offer, choose, offers};
use super::ring::{self, Drained};
use super::{Costs, LoadError, Options, counts, object};
use hopscope_event::slice::{Counters, HookEntry, Point};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramMut};
use std::fs::File;
use std::os::fd::AsRawFd;

/// Programs in the kernel; attached while [`Attached`] lives.
pub struct Slicer {
    object: Object,
    options: Options,
    chosen: Vec<Offer>,
    hooks: Vec<HookEntry>,
    control: Control,
    links: Vec<Link>,
}

/// Hooks whose programs run.
pub type Attached = usize;

impl Slicer {
    /// Loads the programs that the points ask for, having attached each once to see that it can be.
    ///
    /// # Errors
    /// The kernel has no type information, no permission, none of the hooks, or refuses a program.
    pub fn load(options: &Options) -> Result<Slicer, LoadError> {
        if !options.slots.is_power_of_two() || !(64..=1 << 20).contains(&options.slots) {
            return Err(LoadError::Slots {
                slots: options.slots,
            });
        }
        if !options.ring_bytes.is_power_of_two() || !(4096..=1 << 30).contains(&options.ring_bytes)
        {
            return Err(LoadError::Ring {
                bytes: options.ring_bytes,
            });
        }
        let mut all = offers()?;
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
                return Err(LoadError::NoHook {
                    backend: options.backend.map_or("auto", Backend::name),
                });
            }
            let object = object::load(options, &chosen, &stamped)?;
            let mut slicer = Slicer {
                object,
                options: options.clone(),
                hooks: entries(options, &offers),
                chosen,
                control: Control {
                    enabled: 0,
                    min_latency_ns: options.min_latency_ns,
                    ..Control::default()
                },
                links: Vec::new(),
            };
            match slicer.attach() {
                Ok(_) => {
                    slicer.detach();
                    return Ok(slicer);
                }
                // The kernel has the hook by name and refuses it: do without.
                Err((at, why)) => {
                    let refused = slicer.chosen[at].hook;
                    for offer in all.iter_mut().filter(|o| o.hook == refused) {
                        offer.missing = Some(format!("cannot be attached: {why}"));
                    }
                }
            }
        }
    }

    /// Points that are stamped, with the reason where one that was asked for is not.
    pub fn hooks(&self) -> &[HookEntry] {
        &self.hooks
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

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Attaches every program.
    ///
    /// # Errors
    /// Of the first that cannot be attached; none is attached then.
    pub fn start(&mut self) -> Result<Attached, LoadError> {
        self.set_enabled(true)?;
        self.attach().map_err(|(at, why)| {
            let hook = self.chosen[at].hook;
            LoadError::Attach {
                point: hook.point,
                hook: hook.name,
                why,
            }
        })
    }

    /// Detaches every program: hooks cost nothing any more.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    fn attach(&mut self) -> Result<Attached, (usize, String)> {
        for (at, offer) in self.chosen.iter().enumerate() {
            let program = self
                .object
                .progs_mut()
                .find(|program| program.name() == offer.hook.program);
            let link = match program {
                Some(program) => attach(&program, &offer.hook, &self.options),
                None => Err("the program is missing".into()),
            };
            match link {
                Ok(link) => self.links.push(link),
                Err(why) => {
                    self.links.clear();
                    return Err((at, why));
                }
            }
        }
        Ok(self.links.len())
    }

    /// # Errors
    /// The kernel refuses to take the value.
    pub fn set_costs(&mut self, costs: Costs) -> Result<(), LoadError> {
        self.control.costs = RawCosts::from(costs);
        self.write_control()
    }

    /// # Errors
    /// The kernel refuses to take the value.
    pub fn set_enabled(&mut self, is_enabled: bool) -> Result<(), LoadError> {
        self.control.enabled = u32::from(is_enabled);
        self.write_control()
    }

    fn write_control(&self) -> Result<(), LoadError> {
        let map = self
            .object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(".bss"))
            .ok_or(LoadError::Bpf {
                what: "setting values",
                why: "the map is missing".into(),
            })?;
        map.update(&0u32.to_ne_bytes(), &self.control.to_bytes(), MapFlags::ANY)
            .map_err(LoadError::bpf("setting values"))
    }

    /// # Errors
    /// The kernel's map cannot be read.
    pub fn counters(&self) -> Result<Counters, LoadError> {
        counts::read(&self.object)
    }

    /// A reader of the records that the programs hand over.
    ///
    /// # Errors
    /// The ring cannot be mapped.
    pub fn drain(&self) -> Result<Drained, LoadError> {
        ring::open(&self.object)
    }
}

fn attach(program: &ProgramMut<'_>, hook: &Hook, options: &Options) -> Result<Link, String> {
    match hook.kind {
        Kind::Tracepoint(_) | Kind::RawTracepoint(_) | Kind::Function(_) => {
            program.attach().map_err(|e| e.to_string())
        }
        Kind::Cgroup => {
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

fn entries(options: &Options, offers: &[Offer]) -> Vec<HookEntry> {
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
            missing: hooks.is_empty().then(|| match reasons.is_empty() {
                true => "no hook of this backend stamps it".to_owned(),
                false => reasons.join("; "),
            }),
            hooks,
            missed_runs: None,
        }
    };
    options.points.iter().map(entry).collect()
}
