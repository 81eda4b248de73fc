//! A device that stops anywhere, and another that goes on where it said (`VHOST_USER_GET_VRING_BASE`): against a list
//! of what is under way, nothing is lost, doubled, or out of order.
use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy)]
enum Op {
    /// Of so many segments.
    Add(u16),
    Take,
    /// The oldest that was taken.
    Return,
    Reclaim,
    /// `true`: whoever asked keeps the place alone, and not that of used entries.
    Stop(bool),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1..4u16).prop_map(Op::Add),
        6 => Just(Op::Take),
        5 => Just(Op::Return),
        4 => Just(Op::Reclaim),
        2 => any::<bool>().prop_map(Op::Stop),
    ]
}

struct World {
    memory: Memory,
    packed: bool,
    size: u16,
    features: Features,
    driver: Box<dyn DriverRing + Send>,
    device: Box<dyn DeviceRing + Send>,
    /// Number and length of the last segment of what was added, taken, and used.
    added: VecDeque<(u16, u32)>,
    taken: VecDeque<Chain>,
    used: VecDeque<(u16, u32)>,
    serial: u32,
    stops: u32,
}

impl World {
    fn new(packed: bool, size: u16, event_idx: bool) -> World {
        let memory = memory();
        let ends = if packed { packed_ends } else { split_ends };
        let features = features(event_idx);
        let (driver, device) = ends(&memory, size, features);
        World {
            memory,
            packed,
            size,
            features,
            driver,
            device,
            added: VecDeque::new(),
            taken: VecDeque::new(),
            used: VecDeque::new(),
            serial: 0,
            stops: 0,
        }
    }

    fn act(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Add(count) => {
                self.serial += 1;
                let last = |n| n + 1 == count;
                let segments: Vec<Segment> = (0..count)
                    .map(|n| buffer(n.into(), if last(n) { self.serial } else { 1 }, false))
                    .collect();
                if let Ok(id) = self.driver.add_avail(&self.memory, &segments) {
                    self.added.push_back((id, self.serial));
                }
            }
            Op::Take => {
                let chain = self.device.next_avail(&self.memory).expect("fair");
                let expected = self.added.get(self.taken.len());
                prop_assert_eq!(chain.as_ref().map(name), expected.copied());
                self.taken.extend(chain);
            }
            Op::Return => {
                let Some(chain) = self.taken.pop_front() else {
                    return Ok(());
                };
                let (id, serial) = name(&chain);
                prop_assert_eq!(self.added.pop_front(), Some((id, serial)));
                self.device
                    .add_used(&self.memory, id, serial)
                    .expect("fair");
                self.device.publish_used(&self.memory).expect("fair");
                self.used.push_back((id, serial));
            }
            Op::Reclaim => {
                let back = self.driver.next_used(&self.memory).expect("fair");
                prop_assert_eq!(back, self.used.pop_front());
            }
            Op::Stop(half) => self.stop(half),
        }
        Ok(())
    }

    /// As `serve` stops a queue: what is under way goes back, last taken first.
    fn stop(&mut self, half: bool) {
        while let Some(chain) = self.taken.pop_back() {
            self.device.put_back_avail(&chain);
        }
        let base = self.device.vring_base();
        let base = if half { base & 0xffff } else { base };
        let (layout, features) = (layout(self.size), self.features);
        self.device = if self.packed {
            let next = packed::DeviceQueue::resumed(layout, features, base);
            Box::new(next.expect("a place in the ring"))
        } else {
            let mut next = DeviceQueue::new(layout, features, base as u16).expect("fair");
            next.resume(&self.memory).expect("in memory");
            Box::new(next)
        };
        self.stops += 1;
    }
}

fn name(chain: &Chain) -> (u16, u32) {
    (chain.id, chain.segments.last().map_or(0, |last| last.len))
}

fn run(packed: bool, size: u16, event_idx: bool, ops: Vec<Op>) -> Result<World, TestCaseError> {
    let mut world = World::new(packed, size, event_idx);
    for op in ops {
        world.act(op)?;
    }
    world.stop(false);
    // Everything that is left, to the end.
    while !world.added.is_empty() {
        world.act(Op::Take)?;
        world.act(Op::Return)?;
    }
    while !world.used.is_empty() {
        world.act(Op::Reclaim)?;
    }
    prop_assert_eq!(world.driver.free_descriptors(), size);
    prop_assert_eq!(world.driver.next_used(&world.memory).expect("fair"), None);
    prop_assert!(!world.device.has_avail(&world.memory).expect("fair"));
    Ok(world)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s2_8_a_packed_queue_goes_on_where_it_stopped(
        size in 1..9u16, event_idx in any::<bool>(), ops in prop::collection::vec(op(), 1..400),
    ) {
        run(true, size, event_idx, ops)?;
    }

    #[test]
    fn s2_7_a_split_queue_goes_on_where_it_stopped(
        size in 0..4u32, event_idx in any::<bool>(), ops in prop::collection::vec(op(), 1..400),
    ) {
        run(false, 1 << size, event_idx, ops)?;
    }
}

/// At each place of three laps, with nothing, one, or two entries under way.
#[test]
fn a_queue_stops_at_every_place() {
    for packed in [false, true] {
        for held in 0..3 {
            for lead in 0..12 {
                let cycle = [Op::Add(1), Op::Take, Op::Return, Op::Reclaim];
                let mut ops = cycle.repeat(lead);
                ops.extend([Op::Add(1); 2]);
                ops.extend(vec![Op::Take; held]);
                ops.extend([Op::Stop(lead % 2 == 0), Op::Stop(true)]);
                let world = run(packed, 4, true, ops).expect("nothing lost");
                assert_eq!((world.serial as usize, world.stops), (lead + 2, 3));
            }
        }
    }
}

/// vhost-user, "Ring states": bits 0 to 14 the place of the next entry, 15 its wrap counter, above them the same
/// of used ones.
#[test]
fn a_packed_base_has_the_bits_of_the_specification() {
    let mut world = World::new(true, 3, true);
    assert_eq!(world.device.vring_base(), 0x8000_8000);
    let mut lap = |ops: &[Op]| {
        ops.iter().for_each(|op| world.act(*op).expect("fair"));
        world.device.vring_base()
    };
    assert_eq!(lap(&[Op::Add(2), Op::Take]), 0x8000_8002);
    assert_eq!(lap(&[Op::Return, Op::Reclaim]), 0x8002_8002);
    // The second lap begins: its counter is 0.
    assert_eq!(lap(&[Op::Add(2), Op::Take]), 0x8002_0001);
    assert_eq!(lap(&[Op::Return, Op::Reclaim]), 0x0001_0001);
}
