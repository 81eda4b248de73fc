//! A network function with queues that knows which run handled which packet.
use hopscope_analyze::join::{Joined, Joiner, Loss, PacketId};
use hopscope_analyze::{Captured, Run, RunCall, RunIx};
use hopscope_event::{FunctionId, Stamp, StampFlags, StreamIx, ThreadIx, Tsc};

pub const NF: FunctionId = FunctionId(0);
pub const SEQ: u16 = 7;
pub const ENDS: [u16; 3] = [1, 2, 3];

/// Small and seeded: what a case draws must be the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

#[derive(Clone, Copy)]
pub struct Setting {
    pub seed: u64,
    pub threads: usize,
    pub packets: u64,
    /// Mean time between packets; a run takes 100 to 1,000 ticks and 40 a packet.
    pub apart: u64,
    /// Of each run, its packets' numbers or the ends of the batch are captured.
    pub ends: bool,
    /// In 100 runs so many are missing from the recording.
    pub lost_runs: u64,
    /// Of 100 packets so many are lost before they come to a queue.
    pub lost_before: u64,
    pub swapped: bool,
    pub bits: u8,
    pub first_seq: u64,
}

pub const QUIET: Setting = Setting {
    seed: 3,
    threads: 1,
    packets: 3_000,
    apart: 5_000,
    ends: false,
    lost_runs: 0,
    lost_before: 0,
    swapped: false,
    bits: 32,
    first_seq: 0,
};
pub const BUSY: Setting = Setting {
    apart: 120,
    ..QUIET
};

pub struct World {
    pub runs: Vec<Run>,
    pub losses: Vec<Loss>,
    pub stamps: Vec<Stamp>,
    /// By sequence number: the run, `None` when its records are missing.
    pub truth: Vec<Option<usize>>,
}

impl World {
    pub fn new(s: Setting) -> World {
        let mut random = Random(s.seed * 0x9e37_79b9 + 1);
        let mut sent = 10_000;
        let mut stamps = Vec::new();
        let mut queues: Vec<Vec<u64>> = vec![Vec::new(); s.threads];
        for at in 0..s.packets {
            sent += 1 + random.below(2 * s.apart);
            stamps.push(Stamp {
                seq: s.first_seq + at,
                flow: random.below(50) as u32,
                len: 60,
                intended: Tsc(sent),
                sent: Tsc(sent),
                received: None,
                flags: StampFlags::NONE,
            });
            if s.lost_before == 0 || random.below(100) >= s.lost_before {
                queues[random.below(s.threads as u64) as usize].push(at);
            }
        }
        let mut world = World {
            runs: Vec::new(),
            losses: Vec::new(),
            stamps,
            truth: vec![None; s.packets as usize],
        };
        let mut handled = Vec::new();
        for (thread, queue) in queues.iter().enumerate() {
            world.work(s, &mut random, thread, queue, &mut handled);
        }
        // As the merge gives them out.
        handled.sort_by_key(|(run, _, _): &(Run, Vec<u64>, bool)| run.end);
        for (mut run, batch, missing) in handled {
            if missing {
                world.losses.push(Loss {
                    thread: run.thread,
                    from: Tsc(run.start.0 - 1),
                    to: Tsc(run.end.0 + 1),
                });
                continue;
            }
            run.ix = RunIx(world.runs.len() as u64);
            for packet in batch {
                world.truth[packet as usize] = Some(world.runs.len());
            }
            world.runs.push(run);
        }
        world
    }

    /// A thread that polls its queue: each run takes what is there, up to 32 packets.
    fn work(
        &mut self,
        s: Setting,
        random: &mut Random,
        thread: usize,
        mut queue: &[u64],
        handled: &mut Vec<(Run, Vec<u64>, bool)>,
    ) {
        let mut now = 0;
        let mut arrived = 0;
        while let Some(first) = queue.first() {
            now = self.stamps[*first as usize].sent.0.max(now) + 1 + random.below(200);
            let there = |p: &&u64| self.stamps[**p as usize].sent.0 < now;
            let n = queue.iter().take(32).take_while(there).count();
            let (batch, rest) = queue.split_at(n);
            let start = now;
            now += 100 + random.below(900);
            for packet in batch {
                now += 40;
                // The receiver sees it a little later, and never before one that came earlier.
                arrived = (now + random.below(300)).max(arrived + 1);
                if random.below(50) > 0 {
                    self.stamps[*packet as usize].received = Some(Tsc(arrived));
                }
            }
            let run = run(
                s,
                thread,
                (start, now),
                batch.iter().map(|p| s.first_seq + p),
            );
            handled.push((run, batch.to_vec(), random.below(100) < s.lost_runs));
            now += 20;
            queue = rest;
        }
    }

    pub fn joined(&self, id: Option<PacketId>) -> Joined {
        self.joined_by(Joiner::new(id))
    }

    /// By the number of packets that each run took; `ends` must have been captured.
    pub fn joined_by_count(&self) -> Joined {
        self.joined_by(Joiner::new(None).counted_by(Some((NF, ENDS[2]))))
    }

    fn joined_by(&self, mut joiner: Joiner) -> Joined {
        for stamp in &self.stamps {
            joiner.packet(StreamIx(0), *stamp).expect("a few packets");
        }
        for run in &self.runs {
            joiner.run(run).expect("a few runs");
        }
        joiner.finish(&self.losses)
    }

    pub fn truth_of(&self, packet: &hopscope_analyze::Packet) -> Option<RunIx> {
        let place = packet.stamp.seq - self.stamps[0].seq;
        self.truth[place as usize].map(|run| RunIx(run as u64))
    }
}

fn run(s: Setting, thread: usize, span: (u64, u64), seqs: impl Iterator<Item = u64>) -> Run {
    let seqs: Vec<u64> = seqs.collect();
    let captured = |capture, element: usize, value: u64| Captured {
        call: 0,
        capture,
        element: element as u16,
        value: match s.swapped {
            true => value.swap_bytes() >> (64 - u32::from(s.bits)),
            false => value & (u64::MAX >> (64 - u32::from(s.bits))),
        },
    };
    let mut values: Vec<_> = match s.ends {
        false => (seqs.iter().enumerate())
            .map(|(at, seq)| captured(SEQ, at, *seq))
            .collect(),
        true => vec![
            captured(ENDS[0], 0, seqs[0]),
            captured(ENDS[1], 0, seqs[seqs.len() - 1]),
        ],
    };
    if s.ends {
        values.push(Captured {
            value: seqs.len() as u64,
            ..captured(ENDS[2], 0, 0)
        });
    }
    let (entry, exit) = (Tsc(span.0), Tsc(span.1));
    Run {
        ix: RunIx(0),
        thread: ThreadIx(thread as u32),
        root: NF,
        start: entry,
        end: exit,
        complete: true,
        calls: vec![RunCall {
            function: NF,
            depth: 0,
            parent: None,
            entry,
            exit,
            fused: false,
            own_ticks: exit - entry,
            own_corrected: exit - entry,
            off_cpu_ticks: 0,
        }],
        values,
        off_cpu_ticks: 0,
        calls_left_out: 0,
        outside: Vec::new(),
    }
}
