//! Device's ends that are killed before any store, and the next ones, which are told a wrong place, or none.
use super::*;
use crate::ring::packed::stop;
use crate::ring::packed::{DeviceQueue, DriverQueue, START};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy)]
enum Op {
    /// Of so many segments.
    Add(u16),
    /// So many entries, shown together; killed before a store, if it comes to that.
    Serve(usize, Option<u32>),
    /// With so many entries that it has taken.
    Kill(usize),
    /// Amid three entries that are shown together, and the next one, too, before these stores.
    KillTwice(u32, u32),
    Reclaim,
    /// What QEMU 7.2 does while no end is there: it gives back what is available where it believes the place to be.
    Drop,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..4u16).prop_map(Op::Add),
        6 => (1..4usize, prop::option::weighted(0.4, 0..14u32)).prop_map(|(n, stop)| Op::Serve(n, stop)),
        2 => (0..3usize).prop_map(Op::Kill),
        2 => (0..14u32, 0..14u32).prop_map(|(first, next)| Op::KillTwice(first, next)),
        4 => Just(Op::Reclaim),
        1 => Just(Op::Drop),
    ]
}

/// An entry, and how much is written into it.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    id: u16,
    segments: Vec<Segment>,
    len: u32,
}

struct World {
    memory: Memory,
    size: u16,
    driver: DriverQueue,
    device: DeviceQueue,
    /// Not reclaimed yet, in order; of them `served` were shown with what was written.
    entries: VecDeque<Entry>,
    served: usize,
    /// QEMU's place: bits as in `VHOST_USER_SET_VRING_BASE`.
    stale: u32,
    serial: u32,
    kills: u32,
    empty: u32,
    moved: u32,
    lost: u32,
    dropped: bool,
}

impl World {
    fn new(size: u16) -> World {
        stop::after(None);
        let memory = memory();
        let features = features(true);
        World {
            driver: DriverQueue::new(&memory, layout(size), features).expect("fair"),
            device: DeviceQueue::new(layout(size), features).expect("fair"),
            memory,
            size,
            entries: VecDeque::new(),
            served: 0,
            stale: START,
            serial: 0,
            kills: 0,
            empty: 0,
            moved: 0,
            lost: 0,
            dropped: false,
        }
    }

    /// False: the place is lost, and said to be.
    fn act(&mut self, op: Op) -> Result<bool, TestCaseError> {
        match op {
            Op::Add(count) => {
                self.serial += 1;
                let serial = self.serial;
                let segments: Vec<Segment> = (0..count)
                    .map(|n| buffer(n.into(), 0x1000 + serial, true))
                    .collect();
                if let Ok(id) = self.driver.add_avail(&self.memory, &segments) {
                    let len = serial;
                    self.entries.push_back(Entry { id, segments, len });
                }
            }
            Op::Serve(count, stop) => {
                stop::after(stop);
                let done = self.serve(count)?;
                stop::after(None);
                if done.is_err() {
                    return self.kill();
                }
            }
            Op::Kill(taken) => {
                for _ in 0..taken {
                    self.device.next_avail(&self.memory).expect("fair");
                }
                return self.kill();
            }
            Op::KillTwice(first, next) => {
                stop::after(Some(first));
                let _ = self.serve(3)?;
                stop::after(Some(next));
                let (layout, features) = (layout(self.size), features(true));
                let _ = DeviceQueue::found(&self.memory, layout, features, self.stale);
                stop::after(None);
                return self.kill();
            }
            Op::Reclaim => {
                let back = self.driver.next_used(&self.memory).expect("fair");
                let expected = self.entries.front().map(|entry| (entry.id, entry.len));
                match self.served {
                    0 => prop_assert_eq!(back, None),
                    _ => {
                        prop_assert_eq!(back, expected);
                        self.served -= 1;
                        self.entries.pop_front();
                    }
                }
            }
            Op::Drop => {
                self.qemu_drops();
                self.dropped = true;
                return self.kill();
            }
        }
        Ok(true)
    }

    /// Entries as they were added, or the end by a stop.
    fn serve(&mut self, count: usize) -> Result<Result<(), RingError>, TestCaseError> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let chain = self.device.next_avail(&self.memory).expect("fair");
            let expected = self.entries.get(self.served + taken.len());
            let segments = chain.as_ref().map(|chain| chain.segments.clone());
            prop_assert_eq!(segments, expected.map(|entry| entry.segments.clone()));
            let Some(chain) = chain else { break };
            taken.push((chain.id, expected.map_or(0, |entry| entry.len)));
        }
        for (id, len) in &taken {
            if let Err(stopped) = self.device.add_used(&self.memory, *id, *len) {
                return Ok(Err(stopped));
            }
        }
        let done = self.device.publish_used(&self.memory);
        if done.is_ok() {
            self.served += taken.len();
        }
        Ok(done)
    }

    fn kill(&mut self) -> Result<bool, TestCaseError> {
        self.kills += 1;
        let features = features(true);
        let found = DeviceQueue::found(&self.memory, layout(self.size), features, self.stale);
        let (device, _) = match found {
            Ok(found) => found,
            // With chains of several descriptors what QEMU leaves is not always clear.
            Err(RingError::Lost { .. }) if self.dropped => {
                self.lost += 1;
                return Ok(false);
            }
            Err(other) => return Err(TestCaseError::fail(format!("{other}"))),
        };
        self.device = device;
        self.moved += u32::from(self.device.vring_base() as u16 != self.stale as u16);
        // What was shown stays; behind it the driver finds entries with nothing in them, or none.
        let rest = self.entries.split_off(self.served);
        for entry in std::mem::take(&mut self.entries) {
            let back = self.driver.next_used(&self.memory).expect("fair");
            prop_assert_eq!(back, Some((entry.id, entry.len)));
        }
        self.served = 0;
        self.entries = rest;
        while let Some((id, len)) = self.driver.next_used(&self.memory).expect("fair") {
            let entry = self.entries.pop_front();
            prop_assert_eq!(Some((id, len)), entry.map(|entry| (entry.id, 0)));
            self.empty += 1;
        }
        Ok(true)
    }

    /// `virtqueue_packed_drop_all` of QEMU 7.2: only the first descriptor of a chain is written, and no address.
    fn qemu_drops(&mut self) {
        let size = self.size;
        let (mut slot, mut wrap) = (self.stale as u16 & 0x7fff, self.stale & 0x8000 != 0);
        loop {
            let at = |slot: u16, field: u64| GuestAddress(0x1000 + 16 * u64::from(slot) + field);
            let flags = |slot| -> u16 { self.memory.read_obj(at(slot, 14)).expect("there") };
            let available = if wrap { 0x80 } else { 0x8000 };
            if flags(slot) & 0x8080 != available {
                break;
            }
            let mut count = 1;
            while count < size && flags((slot + count - 1) % size) & 1 != 0 {
                count += 1;
            }
            let used = if wrap { 0x8080u16 } else { 0 };
            self.memory.write_obj(0u32, at(slot, 8)).expect("there");
            self.memory.write_obj(used, at(slot, 14)).expect("there");
            let next = slot + count;
            (slot, wrap) = (next % size, wrap ^ (next >= size));
        }
        self.stale = u32::from(slot) | u32::from(wrap) << 15;
    }
}

fn run(size: u16, single: bool, ops: &[Op]) -> Result<World, TestCaseError> {
    let mut world = World::new(size);
    for op in ops {
        let op = match op {
            Op::Add(_) if single => Op::Add(1),
            op => *op,
        };
        if !world.act(op)? {
            prop_assert!(
                !single,
                "where an entry takes one descriptor, nothing is unclear"
            );
            return Ok(world);
        }
    }
    // Everything that is left, to the end.
    while world.entries.len() > world.served {
        world.act(Op::Serve(2, None))?;
    }
    while world.served > 0 {
        world.act(Op::Reclaim)?;
    }
    prop_assert_eq!(world.driver.free_descriptors(), size);
    prop_assert!(!world.device.has_avail(&world.memory).expect("fair"));
    Ok(world)
}

#[test]
fn s2_8_whoever_comes_after_a_kill_finds_the_place() {
    let config = ProptestConfig {
        failure_persistence: None,
        cases: 2000,
        ..ProptestConfig::default()
    };
    let seen = std::cell::RefCell::new([0u32; 4]);
    let all = (1..9u16, any::<bool>(), prop::collection::vec(op(), 1..200));
    let done = proptest::test_runner::TestRunner::new(config).run(&all, |(size, single, ops)| {
        let world = run(size, single, &ops)?;
        let new = [world.kills, world.empty, world.moved, world.lost];
        let mut seen = seen.borrow_mut();
        *seen = std::array::from_fn(|n| seen[n] + new[n]);
        Ok(())
    });
    done.unwrap_or_else(|why| panic!("{why}"));
    let [kills, empty, moved, lost] = seen.into_inner();
    println!("{kills} kills, {empty} entries empty, {moved} at another place, {lost} lost");
    assert!(kills > 1000 && empty > 100 && moved > 1000);
}

/// Before each store of three entries shown together, at each place of the ring, over its end too.
#[test]
fn s2_8_9_a_packet_over_several_entries_is_there_whole_or_not_at_all() {
    for lead in 0..14 {
        for stop in 0..20 {
            let mut ops = [Op::Add(1), Op::Serve(1, None), Op::Reclaim].repeat(lead);
            ops.extend([Op::Add(2), Op::Add(1), Op::Add(3), Op::Serve(3, Some(stop))]);
            ops.extend([Op::Add(1); 2]);
            let world = run(7, false, &ops).expect("nothing lost");
            assert!(world.kills == 0 && stop > 8 || world.kills == 1, "{stop}");
        }
    }
}

/// Nothing before the place tells whose it was: an end of another kind leaves the rest of its chains as they were.
#[test]
fn what_another_kind_of_end_left_is_refused() {
    let mut world = World::new(8);
    for op in [Op::Add(2), Op::Serve(1, None), Op::Reclaim, Op::Add(1)] {
        world.act(op).expect("fair");
    }
    // As it would have been: the address is the driver's, and so are the marks of the second descriptor.
    for slot in [0x1000, 0x1010] {
        let address = GuestAddress(slot);
        world.memory.write_obj(BUFFERS, address).expect("there");
    }
    world
        .memory
        .write_obj(0x82u16, GuestAddress(0x101e))
        .expect("there");
    let found = |base| DeviceQueue::found(&world.memory, layout(8), features(true), base);
    let refused = found(START).map(|_| ());
    let said = "the last back end did not stop at entry 0 (wrap counter 1) as the front end says, and the ring does not \
                say where: load the guest's driver anew";
    assert_eq!(refused.expect_err("not ours").to_string(), said);
    assert!(found(0x8001_8001).is_ok(), "both say the same");
}

/// QEMU writes the first descriptor of a chain only. Its number tells that the rest is no entry of its own.
#[test]
fn a_chain_that_qemu_dropped_is_not_taken_for_another() {
    let mut world = World::new(8);
    for op in [Op::Add(1); 1]
        .iter()
        .chain(&[Op::Serve(1, None), Op::Reclaim])
    {
        world.act(*op).expect("fair");
    }
    for count in [1, 2, 1] {
        world.act(Op::Add(count)).expect("fair");
    }
    // A place that is two laps old: QEMU begins behind the first of the three.
    world.stale = 0x8002;
    world.qemu_drops();
    world.dropped = true;
    assert!(!world.kill().expect("refused"));
    assert_eq!(world.lost, 1);
}

/// Found by thinking about kills: nobody called for what was shown last, and later calls waited for the driver to ask.
#[test]
fn whoever_comes_after_a_kill_calls_for_what_was_shown() {
    for packed in [false, true] {
        let memory = memory();
        let ends = if packed { packed_ends } else { split_ends };
        let (mut driver, mut device) = ends(&memory, 4, features(true));
        driver.enable_notification(&memory, 0).expect("fair");
        for _ in 0..2 {
            driver
                .add_avail(&memory, &[buffer(0, 9, false)])
                .expect("free");
        }
        let serve = |device: &mut Box<dyn DeviceRing + Send>| {
            let chain = device.next_avail(&memory).expect("fair").expect("one");
            device.add_used(&memory, chain.id, 0).expect("fair");
            device.publish_used(&memory).expect("fair");
        };
        serve(&mut device);
        let mut next: Box<dyn DeviceRing + Send> = if packed {
            let next = DeviceQueue::found(&memory, layout(4), features(true), START);
            Box::new(next.expect("a place").0)
        } else {
            let mut next = super::DeviceQueue::new(layout(4), features(true), 1).expect("fair");
            next.resume(&memory).expect("in memory");
            Box::new(next)
        };
        assert_eq!(
            next.needs_notification(&memory).expect("fair"),
            Peer::Asleep
        );
        serve(&mut next);
        assert_eq!(
            next.needs_notification(&memory).expect("fair"),
            Peer::Asleep
        );
        next.notified();
        assert_eq!(next.needs_notification(&memory).expect("fair"), Peer::Awake);
    }
}
