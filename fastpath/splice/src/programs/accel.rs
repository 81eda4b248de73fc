//! The accelerator's programs, attached to control groups.
use super::control::{self, Control, PORTS_MAX};
use super::devices::Devices;
use super::placed::Placing;
use super::{
    Count, Counts, End, Ends, IncompatibleUse, Listener, Mismatch, Order, PlacedThreads, RingUser,
    Sharing, SpliceError,
};
use super::{counts, ends, incompatible, rings, sharing, verify};
use hopscope_bpf::object::{self, has_capabilities};
use hopscope_bpf::{BpfError, compiled};
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramMut};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

static OBJECT: &[u8] = compiled!("accel");

/// Programs at tracepoints of calls. The later ones are there since Linux 6.3: without them MSG_TRUNC is not seen, a
/// connection of a long send takes TCP from then on, and a close that a message comes too late for sends a FIN.
const CALLS: [(&str, &str); 5] = [
    RING,
    ("splice_on_read", "tcp_rcv_space_adjust"),
    ("splice_on_receive", "sock_recv_length"),
    (SENT, "sock_send_length"),
    (QUEUED, "sk_data_ready"),
];
const SENT: &str = "splice_on_sent";
const QUEUED: &str = "splice_on_queued";
/// Programs with an io_uring stay on TCP: one that is made, and those that are there.
const RING: (&str, &str) = ("splice_on_ring", "io_uring_create");
const RINGS: &str = "splice_ring_threads";
const OPTIONS: &str = "splice_on_option";
const FIN: &str = "splice_fin";

/// What a name in `splice_refused` is: `enum name_is`.
const REFUSED: u32 = 1;
const ALLOWED: u32 = 2;
const ANY_VERSION: u32 = 4;

/// Room in a name of `bpf/contract.h`, its end included.
const NAME_MAX: usize = 16;

#[derive(Debug, Clone)]
pub struct Options {
    /// Sockets made in these take part.
    pub cgroups: Vec<PathBuf>,
    /// Servers' ports; none: every port.
    pub ports: Vec<u16>,
    /// Maximum of connections redirected at a time.
    pub connections: u32,
    /// Unread bytes of one direction at most, the kernel's own around them included.
    pub limit_bytes: u64,
    /// Whether the limit counts. Without it a reader that stops costs memory without end: only to see
    /// what the guard costs.
    pub guard: bool,
    /// Sums of what programs send and receive are compared. Every system call of the machine then costs a
    /// little more, those that send or receive on joined sockets a pass over their bytes.
    pub verify: bool,
    /// Connections are joined as soon as both ends are established, whether or not their programs may wait in
    /// a receive: the kernel tells these EAGAIN where TCP would go on waiting.
    pub blocking: bool,
    /// Also accelerates connections between different users.
    pub across_users: bool,
    /// Which threads send is noted, and threads that are placed on a processor are followed.
    pub pair: bool,
    /// What is done to messages: only to see that it is noticed.
    pub spoil: Spoil,
    /// Names of program files that take no part.
    pub refused: Vec<String>,
    /// The same in every version: `python` is `python3.11`, too.
    pub refused_versions: Vec<String>,
    /// Those that take part although they ask FIONREAD, in every version.
    pub allowed: Vec<String>,
    /// Calls and options that redirected bytes do not keep to are looked for. Only to try what these answer without.
    pub watches_calls: bool,
}

/// Each so many'th message on a processor; none in builds without the feature `fault-injection`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spoil {
    /// Gets another first byte.
    pub change_each: Option<u32>,
    /// Loses its first byte.
    pub lose_each: Option<u32>,
    /// Every message: so long after its verdict the kernel goes on with it.
    pub linger_us: Option<u32>,
}

impl Spoil {
    fn is_any(self) -> bool {
        cfg!(feature = "fault-injection")
            && (self.change_each.is_some() || self.lose_each.is_some() || self.linger_us.is_some())
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cgroups: Vec::new(),
            ports: Vec::new(),
            connections: 32_768,
            limit_bytes: 1 << 20,
            guard: true,
            verify: false,
            blocking: false,
            across_users: false,
            pair: false,
            spoil: Spoil::default(),
            refused: Vec::new(),
            refused_versions: Vec::new(),
            allowed: Vec::new(),
            watches_calls: true,
        }
    }
}

/// Programs in the kernel; they go when it is dropped, or the process ends in whatever way.
pub struct Accelerator {
    // Before the object: links hold its programs.
    _links: Vec<Link>,
    orders: Option<Link>,
    ends: Option<Ends>,
    devices: Option<Devices>,
    why_no_resets: Option<SpliceError>,
    placing: Option<Placing>,
    object: Object,
}

/// Those that this kernel has.
fn calls(options: &Options) -> Result<Vec<(&'static str, &'static str)>, SpliceError> {
    if !options.watches_calls {
        return Ok(Vec::new());
    }
    let types = Btf::from_vmlinux().map_err(SpliceError::bpf("reading the kernel's types"))?;
    let has = |point: &str| {
        let name = format!("btf_trace_{point}");
        types.type_by_name::<Typedef<'_>>(&name).is_some()
    };
    Ok(CALLS.into_iter().filter(|call| has(call.1)).collect())
}

impl Accelerator {
    /// # Errors
    /// No permission, a kernel that refuses the programs, a group that is none.
    pub fn start(options: &Options) -> Result<Accelerator, SpliceError> {
        if options.ports.len() > PORTS_MAX {
            return Err(SpliceError::Ports {
                given: options.ports.len(),
                most: PORTS_MAX,
            });
        }
        let calls = calls(options)?;
        let object = object::load(OBJECT, "splice", has_capabilities, |open| {
            for mut map in open.maps_mut() {
                let entries = match map.name().to_str() {
                    // A little more than may join: those that are closed leave after their count.
                    Some("splice_socks" | "splice_orders") => {
                        options.connections.saturating_mul(2) + 1024
                    }
                    // Also of those for which there is no room.
                    Some("splice_met") => options.connections.max(65_536),
                    Some("splice_watched") if options.verify => {
                        options.connections.saturating_mul(2) + 1024
                    }
                    _ => continue,
                };
                map.set_max_entries(entries)
                    .map_err(BpfError::call("sizing a map"))?;
            }
            for mut program in open.progs_mut() {
                program.set_autoload(match program.name().to_str() {
                    Some("splice_call" | "splice_called" | "splice_release") => options.verify,
                    Some(OPTIONS) => options.watches_calls,
                    Some(RINGS) => calls.contains(&RING),
                    Some(name) if CALLS.iter().any(|call| call.0 == name) => {
                        calls.iter().any(|call| call.0 == name)
                    }
                    Some("splice_msg") => !options.spoil.is_any(),
                    Some("splice_msg_spoiling") => options.spoil.is_any(),
                    _ => true,
                });
            }
            Ok(())
        })?;
        let mut accelerator = Accelerator {
            _links: Vec::new(),
            orders: None,
            ends: None,
            devices: None,
            why_no_resets: None,
            placing: options.pair.then(Placing::start).transpose()?,
            object,
        };
        match Devices::start(accelerator.program(FIN)?.as_fd()) {
            Ok(devices) => accelerator.devices = Some(devices),
            Err(error) => accelerator.why_no_resets = Some(error),
        }
        let in_flight = [SENT, QUEUED].map(|name| calls.iter().any(|call| call.0 == name));
        let mut settings = accelerator.settings(options);
        settings.in_flight = in_flight == [true; 2];
        control::write(&accelerator.variables()?, &settings)?;
        for name in &options.allowed {
            accelerator.set_name(name, ALLOWED | ANY_VERSION)?;
        }
        for name in &options.refused_versions {
            accelerator.set_name(name, REFUSED | ANY_VERSION)?;
        }
        for name in &options.refused {
            accelerator.refuse(name)?;
        }
        let ends = Ends::of(accelerator.map("splice_ends")?.as_fd())?;
        accelerator.ends = Some(ends);
        accelerator.orders = Some(accelerator.attach_orders()?);
        accelerator._links = accelerator.attach(options)?;
        Ok(accelerator)
    }

    fn attach(&self, options: &Options) -> Result<Vec<Link>, SpliceError> {
        let map = self.map("splice_socks")?;
        let verdict = self.program(if options.spoil.is_any() {
            "splice_msg_spoiling"
        } else {
            "splice_msg"
        })?;
        verdict
            .attach_sockmap(map.as_fd().as_raw_fd())
            .map_err(SpliceError::bpf("attaching to the map of sockets"))?;
        let gathered = self.map("splice_gathered")?;
        self.program("splice_gather")?
            .attach_sockmap(gathered.as_fd().as_raw_fd())
            .map_err(SpliceError::bpf(
                "attaching to the map of readers that peek",
            ))?;
        let mut links = Vec::new();
        let mut in_groups = vec!["splice_closing", "splice_ops"];
        for (name, _) in calls(options)? {
            let link = self.program(name)?.attach();
            links.push(link.map_err(SpliceError::bpf("attaching to tracepoints"))?);
        }
        if options.watches_calls {
            in_groups.insert(0, OPTIONS);
        }
        // After the tracepoint, and before any connection takes part: no ring comes in between.
        if calls(options)?.contains(&RING) {
            self.look_for_rings()?;
        }
        if options.verify {
            for name in ["splice_call", "splice_called"] {
                let link = self.program(name)?.attach();
                links.push(link.map_err(SpliceError::bpf("attaching to system calls"))?);
            }
            // Before sockets join: none of them may be closed unseen.
            in_groups.insert(0, "splice_release");
        }
        for path in &options.cgroups {
            let group = File::open(path).map_err(|source| SpliceError::Cgroup {
                path: path.clone(),
                source,
            })?;
            for name in &in_groups {
                let link = self.program(name)?.attach_cgroup(group.as_raw_fd());
                links.push(link.map_err(|error| SpliceError::Attach {
                    path: path.clone(),
                    why: error.to_string(),
                })?);
            }
        }
        Ok(links)
    }

    fn look_for_rings(&self) -> Result<(), SpliceError> {
        let what = "looking for programs with an io_uring";
        let look = self.program(RINGS)?.attach();
        ends::run(&look.map_err(SpliceError::bpf(what))?, what).map(|_| ())
    }

    fn attach_orders(&self) -> Result<Link, SpliceError> {
        let map = self.map("splice_ends")?;
        self.program("splice_order")?
            .attach_iter(map.as_fd())
            .map_err(SpliceError::bpf("attaching to the map of ends"))
    }

    fn settings(&self, options: &Options) -> Control {
        Control {
            guard: options.guard,
            pid: std::process::id(),
            limit_bytes: options.limit_bytes,
            ends_max: i64::from(options.connections) * 2,
            ends_now: 0,
            verify: options.verify,
            change_each: options.spoil.change_each.unwrap_or(0),
            lose_each: options.spoil.lose_each.unwrap_or(0),
            blocking: options.blocking,
            across_users: options.across_users,
            pair: options.pair,
            resets: self.devices.is_some(),
            in_flight: false,
            linger_ns: u64::from(options.spoil.linger_us.unwrap_or(0)) * 1_000,
            ports: options.ports.clone(),
            is_stopped: false,
        }
    }

    fn variables(&self) -> Result<impl MapCore + '_, SpliceError> {
        Ok(object::variables(&self.object)?)
    }

    fn map(&self, name: &str) -> Result<impl MapCore + '_, SpliceError> {
        Ok(object::map(&self.object, name)?)
    }

    fn program(&self, name: &'static str) -> Result<ProgramMut<'_>, SpliceError> {
        Ok(object::program(&self.object, name)?)
    }

    /// Sockets that programs of this file name make from now on take no part.
    ///
    /// # Errors
    /// The kernel does not take the name.
    pub fn refuse(&self, name: &str) -> Result<(), SpliceError> {
        self.set_name(name, REFUSED)
    }

    fn set_name(&self, name: &str, is: u32) -> Result<(), SpliceError> {
        let mut key = [0; NAME_MAX];
        for (to, byte) in key[..NAME_MAX - 1].iter_mut().zip(name.bytes()) {
            *to = byte;
        }
        self.map("splice_refused")?
            .update(&key, &is.to_ne_bytes(), MapFlags::ANY)
            .map_err(SpliceError::bpf("refusing a program"))
    }

    /// Connections that are accepted there from now on take no part.
    ///
    /// # Errors
    /// The kernel does not take the port.
    pub fn refuse_listener(&self, listener: Listener) -> Result<(), SpliceError> {
        self.map("splice_ports")?
            .update(&listener.key(), &1u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(SpliceError::bpf("refusing a listener"))
    }

    /// Programs of which one thread sent on a connection while another waited for it, each once for
    /// each such connection.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn take_sharing(&self) -> Result<Vec<Sharing>, SpliceError> {
        Ok(sharing::take(&self.map("splice_sharing")?))
    }

    /// What programs did with their sockets that redirected bytes do not keep to.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn take_incompatible_uses(&self) -> Result<Vec<IncompatibleUse>, SpliceError> {
        Ok(incompatible::take(&self.map("splice_uses")?))
    }

    /// Processes that have an io_uring, of the whole machine.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn ring_users(&self) -> Result<Vec<RingUser>, SpliceError> {
        Ok(rings::of_map(&self.map("splice_rings")?))
    }

    /// Every message takes TCP from now on; redirected bytes can still be read.
    ///
    /// # Errors
    /// The kernel does not take the value.
    pub fn stop(&self) -> Result<(), SpliceError> {
        control::stop(&self.variables()?)
    }

    /// # Errors
    /// The kernel's map cannot be read.
    pub fn counts(&self) -> Result<Counts, SpliceError> {
        let mut counts = counts::of_map(&self.map("splice_counts")?)?;
        if let Some(placed) = self.placed() {
            placed.add_to(&mut counts);
        }
        Ok(counts)
    }

    /// Threads that were pinned to a processor; none without `--pair`.
    pub fn placed(&self) -> Option<&PlacedThreads> {
        self.placing.as_ref().map(|placing| &placing.threads)
    }

    /// Counters and the number of sockets that are joined, from the same moment: a socket that is being closed
    /// meanwhile may be in one and not in the other yet.
    fn settled(&self) -> Result<Counts, SpliceError> {
        const READS: usize = 16;
        let mut counts = Counts::default();
        for _ in 0..READS {
            counts = self.counts()?;
            let open = u64::try_from(self.ends()?).unwrap_or(0);
            counts.add(Count::EndsOpen, open);
            if counts.get(Count::EndsJoined) == counts.get(Count::EndsLeft) + open {
                break;
            }
        }
        Ok(counts)
    }

    /// With what is known of connections that are still open, and of which of these bytes are lost.
    ///
    /// # Errors
    /// The kernel's maps cannot be read.
    pub fn final_counts(&self) -> Result<(Counts, Vec<Mismatch>), SpliceError> {
        let mut counts = self.settled()?;
        // What cannot be looked at is no verdict.
        let ends = || self.ends_seen().unwrap_or_default();
        let wrong = verify::add_open(&self.map("splice_watched")?, &mut counts, ends);
        Ok((counts, wrong))
    }

    /// Directions in which not the bytes arrived that were sent, each once.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn take_wrong(&self) -> Result<Vec<Mismatch>, SpliceError> {
        Ok(verify::take_wrong(&self.map("splice_wrong")?))
    }

    /// Sockets that are redirected now.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn ends(&self) -> Result<i64, SpliceError> {
        Ok(control::read(&self.variables()?)?.ends_now)
    }

    /// Connections that may still join.
    ///
    /// # Errors
    /// The kernel's map cannot be read.
    pub fn room(&self) -> Result<usize, SpliceError> {
        let now = control::read(&self.variables()?)?;
        Ok(usize::try_from((now.ends_max - now.ends_now) / 2).unwrap_or(0))
    }

    /// What is known of the ends that take part.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn ends_seen(&self) -> Result<Vec<End>, SpliceError> {
        let what = "reading what is known of ends";
        self.ends
            .as_ref()
            .ok_or(SpliceError::missing(what, "link"))?
            .look()
    }

    /// Numbers of the maps of ends and of readers that peek, for [`tell`](super::tell).
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn edge_maps(&self) -> Result<[u32; 2], SpliceError> {
        Ok([
            ends::number(&self.map("splice_ends")?)?,
            ends::number(&self.map("splice_gathered")?)?,
        ])
    }

    /// Why an end that is closed with redirected bytes unread sends a FIN, where TCP resets the connection; none where it
    /// does reset it.
    pub fn why_no_resets(&self) -> Option<&SpliceError> {
        self.why_no_resets.as_ref()
    }

    /// Watches the devices by which ends send, and marks those whose device cannot be (`End::FIN_UNSEEN`); with what
    /// stood in the way. `pids`: processes whose network namespaces these may be.
    ///
    /// # Errors
    /// The programs are not there.
    pub fn watch_devices(
        &mut self,
        ends: &mut [End],
        pids: impl Fn() -> Vec<u32>,
    ) -> Result<Vec<SpliceError>, SpliceError> {
        let Some(mut devices) = self.devices.take() else {
            return Ok(Vec::new());
        };
        let errors = devices.look(self.program(FIN)?.as_fd(), ends, pids);
        self.devices = Some(devices);
        Ok(errors)
    }

    /// Does something with ends, by their cookies. What cannot be done is left, and seen with the next look: the
    /// end may have been closed meanwhile.
    ///
    /// # Errors
    /// The kernel does not take them.
    pub fn order(&self, orders: &[(u64, Order, Option<Count>)]) -> Result<(), SpliceError> {
        let what = "changing ends";
        let map = self.map("splice_orders")?;
        for (cookie, order, reason) in orders {
            map.update(&cookie.to_ne_bytes(), &order.value(*reason), MapFlags::ANY)
                .map_err(SpliceError::bpf(what))?;
        }
        let link = self
            .orders
            .as_ref()
            .ok_or(SpliceError::missing(what, "link"))?;
        ends::run(link, what)?;
        for (cookie, _, _) in orders {
            // It is there only where the end is gone.
            let _ = map.delete(&cookie.to_ne_bytes());
        }
        Ok(())
    }
}
