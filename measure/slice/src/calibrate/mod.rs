//! NetSlice's constants, measured before a recording: what an empty region reads (tau_o), what a hit
//! costs from outside, what beginning and handing over a record cost. In a network namespace of its
//! own, over its loopback device, so that nobody else's packets and rules are in it.
mod border;
mod constant;
mod path;
mod traffic;

use crate::kinds::cgroup2;
use crate::programs::{
    CLOCK_ONLY, Choose, Costs, Drained, EMPTY, EMPTY_FIRST, Entry, SliceError, Slicer,
    SlicerOptions,
};
use constant::{constant, median, slope};
use hopscope_bpf::run_stats;
use hopscope_event::slice::{Constant, HookCost, Point, SliceCalibration, SliceEvent, SliceRecord};
use path::{EmptyHit, path_costs};
use traffic::Loopback;

#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    #[error(transparent)]
    Load(#[from] SliceError),
    #[error("{what} for measuring constants: {source}")]
    Os {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("measuring constants: only {seen} of {sent} packets were recorded")]
    TooFew { sent: u32, seen: u32 },
}

/// Turns of programs attached and not: the differences of neighbours count.
const ROUNDS: usize = 10;
/// Packets of a turn.
const PACKETS: u32 = 200;

/// What was measured, and what the programs were told of it: enough to do without measuring again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Constants {
    pub calibration: SliceCalibration,
    pub costs: Costs,
}

/// Measures all constants on this machine, as `slicer` is loaded, and detaches it. Afterwards its programs know them.
///
/// # Errors
/// Programs cannot be attached, or no namespace can be made.
pub fn calibrate(slicer: &mut Slicer) -> Result<Constants, CalibrateError> {
    slicer.detach();
    let traffic = Loopback::new()?;
    let empty = empty_regions(slicer.options(), &traffic)?;
    let clock_only = extra_hits(slicer, &traffic, CLOCK_ONLY)?;
    if slicer.options().event != SliceEvent::Time {
        return of_event(slicer, &empty);
    }
    let root = cgroup2().unwrap_or_else(|| slicer.options().cgroup.clone());
    let mut twin = if slicer.options().cgroup == root {
        None
    } else {
        // The programs of one group's sockets do not see this process.
        Some(Slicer::load(&SlicerOptions {
            cgroup: root,
            ..slicer.options().clone()
        })?)
    };
    if let Some(twin) = &mut twin {
        twin.detach();
    }
    let measured = twin.as_mut().unwrap_or(slicer);
    let path = path_costs(measured, &traffic, empty.hit)?;
    let borders = border::borders(measured, &traffic)?;
    let mut hit_ns = [empty.hit.hit.mode; Point::MAX];
    for cost in &path.hits {
        hit_ns[cost.point as usize] = cost.hit.mode;
    }
    let costs = Costs {
        hit_ns,
        miss_ns: [path.miss.mode; Point::MAX],
        begin_ns: path.begin.mode,
        hand_over_ns: path.hand_over.mode,
    };
    slicer.set_costs(costs)?;
    let calibration = SliceCalibration {
        tau_o: Some(empty.tau_o),
        clock_only_hit: Some(clock_only),
        hits: path.hits,
        begin: Some(path.begin),
        hand_over: Some(path.hand_over),
        border_out: borders.out,
        border_in: borders.r#in,
    };
    Ok(Constants { calibration, costs })
}

/// Constants in events (NetSlice's n(o,e) and n(beta,e)): every hit counts as one that only stamps, and
/// nothing is known of beginning and handing over.
fn of_event(slicer: &mut Slicer, empty: &Empty) -> Result<Constants, CalibrateError> {
    let hit = empty.hit.hit;
    let costs = Costs {
        hit_ns: [hit.mode; Point::MAX],
        miss_ns: [hit.mode; Point::MAX],
        ..Costs::default()
    };
    slicer.set_costs(costs)?;
    let points = slicer.points().into_iter();
    let calibration = SliceCalibration {
        tau_o: Some(empty.tau_o),
        hits: points.map(|point| HookCost { point, hit }).collect(),
        ..SliceCalibration::default()
    };
    Ok(Constants { calibration, costs })
}

struct Empty {
    tau_o: Constant,
    hit: EmptyHit,
}

/// Where the region lies that has no, or four, hits inside.
const OUTER: (Point, Point) = (Point::TxDevQueue, Point::TxDriver);

/// Stamps at one place: what lies between two of them is tau_o; what four of them add to the region
/// around them is what four hits cost.
fn empty_regions(options: &SlicerOptions, traffic: &Loopback) -> Result<Empty, CalibrateError> {
    let points = vec![
        Point::TxIpOut,
        OUTER.0,
        OUTER.1,
        Point::RxCore,
        Point::RxIp,
        Point::RxCopied,
    ];
    let event = options.event.clone();
    // Of whatever backend has all of these points; in the group that every process is in.
    let options = SlicerOptions {
        cgroup: cgroup2().unwrap_or_else(|| options.cgroup.clone()),
        event,
        ..SlicerOptions::new(points)
    };
    let mut slicer = load(&options, traffic)?;
    let mut ring = slicer.drain()?;
    slicer.start()?;
    traffic.run(PACKETS)?;
    let (mut between, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new());
    let mut run_ns = Vec::new();
    for _ in 0..ROUNDS {
        ring.take_all()?;
        traffic.run(PACKETS)?;
        without.push(outer(&mut ring)?);
        let links = slicer.attach_extra(EMPTY)?;
        traffic.run(PACKETS)?;
        let records = records(&mut ring)?;
        run_ns.extend(empty_runs(&slicer, traffic)?);
        drop(links);
        with.push(median_outer(&records)?);
        for record in &records {
            let stamps = &record.stamps[EMPTY_FIRST..EMPTY_FIRST + EMPTY.len()];
            let pairs = stamps
                .windows(2)
                .filter(|pair| pair.iter().all(|word| word.is_taken()));
            between.extend(pairs.map(|pair| pair[1].delta().saturating_sub(pair[0].delta())));
        }
    }
    Ok(Empty {
        tau_o: constant(between),
        hit: EmptyHit {
            hit: slope(&without, &with, EMPTY.len() as u32),
            run_ns: median(&mut run_ns),
        },
    })
}

/// Follows the packets here alone: what others send and do not read would hold the slots.
fn load(options: &SlicerOptions, traffic: &Loopback) -> Result<Slicer, CalibrateError> {
    let mut slicer = Slicer::load_to_calibrate(options)?;
    slicer.set_own(traffic.netns())?;
    slicer.set_choose(Choose::Own)?;
    Ok(slicer)
}

/// What the kernel measures of a run of each program that only stamps, in ns.
fn empty_runs(slicer: &Slicer, traffic: &Loopback) -> Result<Vec<u32>, CalibrateError> {
    let before = slicer.runs(EMPTY)?;
    let measuring = run_stats::measure().map_err(SliceError::from)?;
    traffic.run(PACKETS)?;
    drop(measuring);
    let after = slicer.runs(EMPTY)?;
    let pairs = before
        .iter()
        .zip(&after)
        .filter(|((point, _), _)| point.is_none());
    let times = pairs.filter_map(|((_, before), (_, after))| {
        let runs = (after.runs - before.runs).max(1);
        u32::try_from((after.run_ns - before.run_ns) / runs).ok()
    });
    Ok(times.collect())
}

fn records(ring: &mut Drained) -> Result<Vec<SliceRecord>, CalibrateError> {
    let entries = ring.take_all()?;
    let records = entries.into_iter().filter_map(|entry| match entry {
        Entry::Record(record) if traffic::is_ours(&record) => Some(record),
        _ => None,
    });
    Ok(records.collect())
}

fn outer(ring: &mut Drained) -> Result<u32, CalibrateError> {
    median_outer(&records(ring)?)
}

fn median_outer(records: &[SliceRecord]) -> Result<u32, CalibrateError> {
    let outer = records.iter().filter_map(|record| {
        let (from, to) = (record.stamp(OUTER.0)?, record.stamp(OUTER.1)?);
        to.delta().checked_sub(from.delta())
    });
    let mut outer: Vec<u32> = outer.collect();
    match outer.len() as u32 {
        seen if seen < PACKETS / 2 => Err(CalibrateError::TooFew {
            sent: PACKETS,
            seen,
        }),
        _ => Ok(median(&mut outer)),
    }
}

/// What one run of a program costs, seen from outside: a packet's time with four of them and without.
fn extra_hits(
    slicer: &Slicer,
    traffic: &Loopback,
    programs: &[&str],
) -> Result<Constant, CalibrateError> {
    let options = SlicerOptions {
        cgroup: slicer.options().cgroup.clone(),
        ..SlicerOptions::new(vec![Point::TxDevQueue])
    };
    let mut slicer = load(&options, traffic)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(traffic.run(PACKETS)?);
        let links = slicer.attach_extra(programs)?;
        with.push(traffic.run(PACKETS)?);
        drop(links);
    }
    Ok(slope(&without, &with, programs.len() as u32))
}
