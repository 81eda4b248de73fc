//! Instances on their threads: the first on the main one, until a signal or the end of one of them.
use anyhow::Context;
use hopscope_serving::events::EventLog;
use hopscope_stack_instance::command::Mail;
use hopscope_stack_instance::share::Share;
use hopscope_stack_instance::{App, Device, Instance, InstancePlan, LinkChange};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::cores::Cores;
use super::link::LinkArgs;

/// Readable once it is to end.
pub(super) struct Stop {
    stop: UnixStream,
    stopper: UnixStream,
}

impl Stop {
    /// At SIGINT or SIGTERM.
    pub(super) fn at_signals() -> anyhow::Result<Stop> {
        let (stop, stopper) = UnixStream::pair().context("making a socket")?;
        for signal in [SIGINT, SIGTERM] {
            let end = stopper.try_clone().context("taking over signals")?;
            signal_hook::low_level::pipe::register(signal, end).context("taking over signals")?;
        }
        Ok(Stop { stop, stopper })
    }
}

/// Of each engine, and where the first asks the others.
pub(super) type Started<A> = (Vec<Instance<A>>, Vec<Arc<Mail>>);

/// An instance for each device, not running yet.
pub(super) fn start<A: App>(
    link: &LinkArgs,
    devices: Vec<Device>,
    mut log: impl FnMut(usize) -> EventLog,
    mut app: impl FnMut() -> A,
    datagrams_at_first: bool,
) -> anyhow::Result<Started<A>> {
    let of = devices.len() as u16;
    let longest = devices.iter().map(|d| d.port.capabilities().max_frame_len);
    let longest = longest.max().unwrap_or(0);
    let shares = Share::all(of, longest, datagrams_at_first).context("making eventfds")?;
    let mails: Vec<Arc<Mail>> = devices.iter().map(|_| Arc::default()).collect();
    let mut instances = Vec::new();
    for (n, (device, share)) in devices.into_iter().zip(shares).enumerate() {
        let mut config = link.config(&device)?;
        config.share.index = n as u16;
        config.share.of = of;
        config.share.datagrams_at_first = datagrams_at_first;
        let plan = InstancePlan {
            device,
            config,
            share,
            spin: link.spin,
            log: log(n),
            on_link: tell_of(link, n),
            mail: mails[n].clone(),
        };
        instances.push(Instance::start(plan, app())?);
    }
    Ok((instances, mails))
}

/// Of one that flaps.
const MTUS_TOLD: u32 = 20;

/// What a user is told of the device: once, whichever engine has a queue of it.
fn tell_of(link: &LinkArgs, engine: usize) -> Box<dyn FnMut(LinkChange) + Send> {
    let name = link.interface.to_string();
    let mut mtus_told = 0;
    Box::new(move |change| match change {
        _ if engine > 0 => {}
        LinkChange::Down => log::warn!("{name} is down: frames are dropped until it is up again"),
        LinkChange::Mtu { .. } if mtus_told > MTUS_TOLD => {}
        LinkChange::Mtu { .. } if mtus_told == MTUS_TOLD => {
            mtus_told += 1;
            log::warn!("{name}: its MTU changes again: from now on that is only counted");
        }
        LinkChange::Mtu { from, to } => {
            mtus_told += 1;
            log::warn!("{name}: the MTU is {to} now, it was {from}");
        }
        LinkChange::Up { after, dropped } => {
            let seconds = after.0 as f64 / 1e9;
            log::warn!("{name} is up again after {seconds:.3} s; {dropped} frames were dropped");
        }
    })
}

/// Runs all of them until the end; gives them back with what ended them, if it was an error.
pub(super) fn run<A: App>(
    instances: &mut [Instance<A>],
    stop: &Stop,
    cores: Option<&Cores>,
) -> anyhow::Result<()> {
    std::thread::scope(|scope| {
        let mut instances = instances.iter_mut();
        let first = instances.next().context("no engine")?;
        let others: Vec<_> = instances
            .zip(1..)
            .map(|(instance, n)| scope.spawn(move || ended(instance, stop, (cores, n))))
            .collect();
        let mut done = ended(first, stop, (cores, 0));
        for other in others {
            let other = other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            done = done.and(other);
        }
        done
    })
}

/// However one ends, also by a panic.
struct AllEnd<'a>(&'a Stop);

impl Drop for AllEnd<'_> {
    fn drop(&mut self) {
        let _ = (&self.0.stopper).write(&[0]);
    }
}

/// When one ends, all do.
fn ended<A: App>(
    instance: &mut Instance<A>,
    stop: &Stop,
    (cores, engine): (Option<&Cores>, usize),
) -> anyhow::Result<()> {
    let _all = AllEnd(stop);
    cores.map_or(Ok(()), |cores| cores.pin(engine))?;
    Ok(instance.run(stop.stop.as_fd())?)
}
