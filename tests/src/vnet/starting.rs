//! When a queue begins, stops, goes on, and when its bells are others: no kick, no call and no packet is lost, however
//! messages and kicks follow each other (vhost-user, "Ring states").
use super::front_end::{FrontEnd, GUEST_CSUM, Layout, PROTOCOL_FEATURES, RING_PACKED, VERSION_1};
use super::kernel::{Kernel, frame};
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_tests::Suite;

const RINGS: [(Layout, u64); 2] = [(Layout::Split, 0), (Layout::Packed, RING_PACKED)];

pub(super) fn register(suite: &mut Suite) {
    use hopscope_tests::Requirement::Netns;
    for (name, run) in [
        ("a_kick_before_its_ring_is_enabled", kicked as fn() -> _),
        ("the_bells_that_it_was_given_last", bells),
        ("a_queue_where_it_stopped", stopped),
        ("what_comes_after_its_restart", restarted),
    ] {
        suite.case(format!("vnet::serve_serves_{name}"), &[Netns], run);
    }
}

/// What the last message is that makes a ring live.
#[derive(Debug, Clone, Copy)]
enum Last {
    Enable,
    /// Where it lies: without protocol features there is no message that enables it.
    Place,
    /// The bell, which had rung before.
    Bell,
}

fn kicked() -> Result<()> {
    let mut kernel = Kernel::new()?;
    let serving = kernel.serve()?;
    let cases = [
        (PROTOCOL_FEATURES, Last::Enable),
        (PROTOCOL_FEATURES, Last::Place),
        (PROTOCOL_FEATURES, Last::Bell),
        (0, Last::Place),
        (0, Last::Bell),
    ];
    for (layout, packed) in RINGS {
        for (protocol, last) in cases {
            let features = VERSION_1 | protocol | packed;
            kick_before(&mut kernel, &serving, features, last)
                .with_context(|| format!("{layout:?} {protocol:#x} {last:?}"))?;
        }
    }
    let summary = serving.stop()?.summary;
    let count = |name: &str| {
        let found = summary.pointer(&format!("/pairs/0/{name}"));
        found.and_then(serde_json::Value::as_u64)
    };
    let each = Some((RINGS.len() * cases.len()) as u64);
    for name in ["tx/kicks", "rx/kicks", "tx/packets", "rx/packets"] {
        ensure!(count(name) == each, "{name}: {summary}");
    }
    Ok(())
}

/// One kick a queue, and none once it is live.
fn kick_before(kernel: &mut Kernel, serving: &Serving, features: u64, last: Last) -> Result<()> {
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.negotiate(features)?;
    front_end.make_room()?;
    front_end.put(&frame(1))?;
    for queue in 0..2 {
        front_end.tell(queue, front_end.base())?;
        front_end.tell_call(queue)?;
        let (place, bell) = match last {
            Last::Enable => (true, true),
            Last::Place => (false, true),
            Last::Bell => (true, false),
        };
        if place {
            front_end.tell_place(queue)?;
        }
        if features & PROTOCOL_FEATURES != 0 && !matches!(last, Last::Enable) {
            front_end.enable(queue, true)?;
        }
        match bell {
            true => {
                front_end.tell_kick(queue)?;
                front_end.kick(queue)?;
                front_end.heard(queue)?;
            }
            false => front_end.kick(queue)?,
        }
    }
    for queue in 0..2 {
        match last {
            Last::Enable => front_end.enable(queue, true)?,
            Last::Place => front_end.tell_place(queue)?,
            Last::Bell => front_end.tell_kick(queue)?,
        }
    }
    front_end.done(1)?;
    kernel.come(&[1])?;
    kernel.send(2)?;
    front_end.done(0)?;
    ensure!(front_end.received(0, 100)? == frame(2), "other bytes");
    front_end.leave()
}

/// Replaced while the ring is live: by the new one it is called, also for what the old one was to say; kicks of both count.
fn bells() -> Result<()> {
    let mut kernel = Kernel::new()?;
    let serving = kernel.serve()?;
    for (_, packed) in RINGS {
        let mut front_end = FrontEnd::connect(serving.socket())?;
        front_end.start(VERSION_1 | PROTOCOL_FEATURES | packed)?;
        front_end.send(&frame(0))?;
        kernel.come(&[0])?;
        front_end.done(1)?;
        for number in 1..20 {
            // What is used now is announced by one bell or the other.
            front_end.replace_call(1)?;
            let old = front_end.replace_kick(1)?;
            front_end.put(&frame(number))?;
            match number % 3 {
                0 => old.write(1).map(drop)?,
                1 => front_end.kick(1)?,
                _ => {
                    old.write(1)?;
                    front_end.kick(1)?;
                }
            }
            front_end.tell_call(1)?;
            front_end.tell_kick(1)?;
            kernel.come(&[number])?;
            front_end.done(1)?;
        }
        front_end.take()?;
        for number in 0..20 {
            front_end.replace_call(0)?;
            front_end.tell_call(0)?;
            kernel.send(number)?;
            front_end.done(0)?;
            let came = front_end.received(number.into(), 100)?;
            ensure!(came == frame(number), "{number}: {came:?}");
            front_end.replace_kick(0)?;
            front_end.make_room()?;
            front_end.tell_kick(0)?;
        }
        front_end.leave()?;
    }
    let said = serving.stop()?;
    // Of 19, six by the old bell, seven by the new one, six by both; and the first one.
    let kicks = &said.summary["pairs"][0]["tx"]["kicks"];
    ensure!(*kicks == RINGS.len() * (6 + 7 + 2 * 6 + 1), "{}", said.all);
    Ok(())
}

/// `GET_VRING_BASE`, then the bell again: what was added meanwhile, with a kick or without, is served, in both directions.
fn stopped() -> Result<()> {
    let mut kernel = Kernel::new()?;
    let serving = kernel.serve()?;
    for (layout, packed) in RINGS {
        let mut front_end = FrontEnd::connect(serving.socket())?;
        front_end.start(VERSION_1 | PROTOCOL_FEATURES | GUEST_CSUM | packed)?;
        for _ in 0..8 {
            front_end.take()?;
        }
        for round in 0..6u8 {
            let first = 8 * round;
            front_end.send(&frame(first))?;
            kernel.send(first)?;
            kernel.come(&[first])?;
            front_end.done(1)?;
            front_end.done_until(0, 4 * u16::from(round) + 1)?;
            let bases = [front_end.stop(0)?, front_end.stop(1)?];
            let numbers = [first + 1, first + 2, first + 3];
            for number in numbers {
                front_end.put(&frame(number))?;
                kernel.send(number)?;
            }
            if round % 2 == 0 {
                front_end.kick(1)?;
                front_end.kick(0)?;
                front_end.heard(1)?;
            }
            for (queue, base) in bases.into_iter().enumerate() {
                front_end.tell(queue, base)?;
                front_end.tell_place(queue)?;
                front_end.tell_kick(queue)?;
            }
            kernel
                .come(&numbers)
                .with_context(|| format!("{layout:?}, round {round}"))?;
            front_end.done(1)?;
            let taken = 4 * u16::from(round) + 4;
            front_end.done_until(0, taken)?;
            for n in 0..4 {
                let came = front_end.received(taken - 4 + n, 100)?;
                ensure!(came == frame(first + n as u8), "{layout:?}: {came:?}");
            }
            for _ in 0..4 {
                front_end.take()?;
            }
        }
        front_end.leave()?;
    }
    let said = serving.stop()?;
    ensure!(said.broken_off.is_empty(), "{}", said.all);
    Ok(())
}

/// The front end keeps its rings, and kicks nobody: buffers that it gave to the back end before are received into.
fn restarted() -> Result<()> {
    let mut kernel = Kernel::new()?;
    for (layout, packed) in RINGS {
        let mut serving = kernel.serve()?;
        let features = VERSION_1 | PROTOCOL_FEATURES | GUEST_CSUM | packed;
        let mut front_end = FrontEnd::connect(serving.socket())?;
        front_end.start(features)?;
        for _ in 0..40 {
            front_end.take()?;
        }
        for n in 0..8u8 {
            kernel.send(n)?;
            front_end.done_until(0, u16::from(n) + 1)?;
            let came = front_end.received(n.into(), 100)?;
            ensure!(came == frame(n), "{layout:?} {n}: {came:?}");
            // What it sends goes on, too.
            front_end.put(&frame(100 + n))?;
            match n % 2 {
                0 => serving.stop().map(drop)?,
                _ => serving.kill()?,
            }
            serving = kernel.serve()?;
            front_end.reconnect(serving.socket())?;
            front_end.negotiate(features)?;
            for queue in 0..2 {
                // As QEMU 7.2: it knows the place of a split ring, and that of a packed one's begin.
                let base = match layout {
                    Layout::Split => front_end.used(queue)?.into(),
                    Layout::Packed => front_end.base(),
                };
                front_end.tell(queue, base)?;
                front_end.tell_place(queue)?;
                front_end.tell_call(queue)?;
                front_end.tell_kick(queue)?;
                front_end.enable(queue, true)?;
            }
            kernel
                .come(&[100 + n])
                .with_context(|| format!("{layout:?} {n}"))?;
            front_end.done(1)?;
        }
        front_end.leave()?;
        serving.stop()?;
    }
    Ok(())
}
