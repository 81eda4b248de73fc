//! What a probe costs on this machine: measured on a child of our own, by the same attach that
//! the targets get.
mod counters;
mod readings;

use super::AttachRequest;
use crate::error::{Context, Error, Result, in_one_line, refuse};
use hopscope_calibration::{FUNCTIONS, IN_TURN, PIPELINE, PIPELINE_LOOP, RECORDS_OF_FIRST, STAGES};
use hopscope_event::layout::{self, OFF};
use hopscope_event::ring::{Position, Visit};
use hopscope_event::{
    FunctionId, FusedCost, MemoryBoundCost, ProbeCost, ProcessEntry, ProcessIx, RecordingMeta,
};
use hopscope_probe::counters::clock_sync;
use hopscope_probe::live::install::{InstallOptions, Installed, Stores, install};
use hopscope_probe::live::table::PatchTable;
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::plan::Plan;
use std::io::{BufRead, BufReader, Write};
use std::mem::offset_of;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The hidden subcommand that this program starts itself with.
pub const CALIBRATION: &str = "__calibrate";

pub(crate) use counters::with_counters;
use readings::{Measured, ahead, read, read_fused, ticks};

struct Loops {
    child: Child,
    count: usize,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Loops {
    fn start() -> Result<Loops> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(CALIBRATION)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting the calibration process")?;
        let input = child.stdin.take().with_context(|| "its input")?;
        let output = BufReader::new(child.stdout.take().with_context(|| "its output")?);
        let mut loops = Loops {
            child,
            count: 0,
            input,
            output,
        };
        loops.count = loops.line()?.trim().parse().context("its first line")?;
        Ok(loops)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            refuse!("the calibration process ended early");
        }
        Ok(line)
    }

    /// Thousandths of a tick a call: lowest twentieth, median, highest tenth.
    fn time(&mut self, which: usize) -> Result<[i64; 3]> {
        writeln!(self.input, "{which}")?;
        let line = self.line()?;
        let numbers: Vec<i64> = line
            .split_whitespace()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()?;
        numbers
            .try_into()
            .map_err(|_| Error::refused(format!("unexpected answer {line:?}")))
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        // It may hold patched code: it must not outlive us.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the recorder knows of its probes before it attaches.
struct Calibrated {
    cost: ProbeCost,
    off_ticks: Option<[u64; 3]>,
}

/// What recordings of this machine begin with. Also what a call costs with its probes switched off (lowest, median,
/// highest), where they can be.
pub(crate) fn with_calibration(
    request: &AttachRequest,
    options: &InstallOptions,
) -> (RecordingMeta, Option<[u64; 3]>) {
    let mut meta = RecordingMeta {
        ring_records: 1 << options.ring_records_log2,
        ..hopscope_trace::host::meta()
    };
    let mut off_ticks = None;
    if !request.no_calibration && options.stores == Stores::Records {
        match measure(&meta, options) {
            Ok(calibrated) => {
                meta.probe_cost = Some(calibrated.cost);
                off_ticks = calibrated.off_ticks;
            }
            Err(e) => crate::status::say!(
                "the probe's cost could not be measured: {}; reports will show raw times only",
                in_one_line(&e)
            ),
        }
    }
    meta.start = clock_sync();
    (meta, off_ticks)
}

fn measure(meta: &RecordingMeta, options: &InstallOptions) -> Result<Calibrated> {
    let mut loops = Loops::start()?;
    let pid = loops.child.id() as i32;
    let functions = &FUNCTIONS[..loops.count.min(FUNCTIONS.len())];
    let bare: Vec<_> = (0..functions.len())
        .map(|which| {
            loops.time(which)?; // warm-up
            loops.time(which)
        })
        .collect::<std::result::Result<_, _>>()?;
    let fuses = options.fuses();
    let stages: &[&str] = if fuses { &PIPELINE } else { &[] };
    let bare_pipeline = match fuses {
        true => {
            loops.time(PIPELINE_LOOP)?;
            Some(loops.time(PIPELINE_LOOP)?)
        }
        false => None,
    };
    let in_turn = (loops.count > IN_TURN)
        .then(|| loops.time(IN_TURN))
        .transpose()?;
    let mut plan = Plan::default();
    let patterns = functions
        .iter()
        .chain(stages)
        .map(|name| format!("/{name}$/"));
    let patterns: Vec<Pattern> = patterns
        .map(|p| Pattern::parse(&p))
        .collect::<std::result::Result<_, _>>()?;
    let mut items = plan.add_process(pid, &patterns, false)?;
    items.retain(|item| !item.may_be_unwound());
    let id = |name: &&str| {
        let of = plan.functions.iter().find(|f| f.name.ends_with(*name))?;
        items.iter().any(|item| item.id == of.id).then_some(of.id)
    };
    let ids: Vec<Option<FunctionId>> = functions.iter().map(id).collect();
    let second = stages.get(1).and_then(id);
    if ids.first().is_none_or(Option::is_none) {
        let why = plan.refusals.first().map(|r| r.reason.clone());
        refuse!("no function to calibrate with: {}", why.unwrap_or_default());
    }
    let table = PatchTable::new(
        meta.clone(),
        ProcessEntry {
            ix: ProcessIx(0),
            pid,
            comm: "calibration".into(),
            command_line: vec![],
        },
        plan.modules,
        plan.functions,
    );
    let selected: Vec<_> = items.iter().map(|i| i.selected()).collect();
    let options = InstallOptions {
        contexts: 4,
        stores: Stores::Records,
        ..*options
    };
    let mut installed = install(pid, selected, &options, table)?;
    let context = installed.threads.first().map_or(0, |(_, context)| *context);
    go_round(&mut loops, meta.ring_records)?;
    let mut position = Position::default();
    let mut measured = Vec::new();
    for (which, id) in ids.into_iter().enumerate() {
        let Some(id) = id else {
            measured.push(None);
            continue;
        };
        loops.time(which)?;
        let probed = loops.time(which)?;
        // The ring holds the last calls of this loop, and by now nothing else.
        let mut records = Vec::new();
        if let Some(ring) = installed.pool().ring(context as usize) {
            ring.drain(&mut position, Visit::Live, usize::MAX, &mut records);
        }
        records.retain(|r| r.function() == id);
        let bare = bare[which][1];
        measured.push(Some(Measured {
            read: read(&records)?,
            bare,
            pair: probed.map(|probed| ticks(probed - bare)),
        }));
    }
    let mut fused = None;
    if let (Some(id), Some(bare)) = (second, bare_pipeline) {
        loops.time(PIPELINE_LOOP)?;
        loops.time(PIPELINE_LOOP)?;
        let mut records = Vec::new();
        if let Some(ring) = installed.pool().ring(context as usize) {
            ring.drain(&mut position, Visit::Live, usize::MAX, &mut records);
        }
        fused = read_fused(&records, id).map(|read| read.map(|ticks| ticks - bare[1] / STAGES));
    }
    let off_ticks = if options.switchable {
        Some(switched_off(&installed, &mut loops, &bare)?)
    } else {
        None
    };
    installed.detach()?;
    // Our own child's stops are nobody's pause.
    hopscope_process::stop_times::take(pid);
    let of = |which: usize| measured.get(which).copied().flatten();
    let leaf = of(0).with_context(|| "the first loop")?;
    let chain = of(1).unwrap_or(leaf);
    // What a body waits for anyway hides a part of its probes.
    let least = |leaf: [u64; 3], chain: [u64; 3]| [leaf[0].min(chain[0]), leaf[1], leaf[2]];
    let missing = [of(2), of(3)].into_iter().flatten();
    let (bias_ticks, pair_ticks) = (
        least(leaf.bias(), chain.bias()),
        least(leaf.pair, chain.pair),
    );
    let fused = fused.map(|thousandths| {
        let [mean, high] = thousandths.map(ticks);
        // Where these calls lie, and among what, decides how much of it is hidden by what they wait for: all of it may be. More than
        // others they do not cost.
        FusedCost {
            call_ticks: [0, mean, high.max(pair_ticks[2])],
        }
    });
    let cost = ProbeCost {
        fused,
        bias_ticks,
        pair_ticks,
        ahead_ticks: ahead(chain, in_turn.zip(of(3)), options.ordered_stamps),
        memory_bound: missing
            .map(|m| (m.bias()[2], m.pair[2]))
            .reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))
            .map(|(bias_ticks, pair_ticks)| MemoryBoundCost {
                bias_ticks,
                pair_ticks,
            }),
        in_place: None,
    };
    Ok(Calibrated { cost, off_ticks })
}

/// Behind the first lap of a ring, in which calls cost more (each of its pages is touched for the first time). Of larger rings only
/// so much is gone through.
fn go_round(loops: &mut Loops, ring_records: u64) -> Result<()> {
    const AT_MOST: u64 = (256 << 20) / 16;
    for _ in 0..ring_records.min(AT_MOST) / RECORDS_OF_FIRST {
        loops.time(0)?;
    }
    Ok(())
}

/// What such a call waits for anyway may hide all of it, and in a loop of nothing else it hides nothing:
/// half of that is taken. Where the detour hinders what it lies among, it may be twice that; among misses its
/// instructions take the place of others in the processor's window, so that fewer misses are under way at once.
fn switched_off(installed: &Installed, loops: &mut Loops, bare: &[[i64; 3]]) -> Result<[u64; 3]> {
    for (_, context) in &installed.threads {
        let context = u64::from(*context) * size_of::<layout::Context>() as u64;
        let at = installed.table.contexts.at + context;
        let at = at + offset_of!(layout::Context, switch) as u64;
        let off = OFF.to_le_bytes();
        installed.memory.write(at, &off)?;
    }
    let mut added = |which: usize| -> Result<[u64; 3]> {
        loops.time(which)?;
        let off = loops.time(which)?;
        Ok(off.map(|ticks| ((ticks - bare[which][1]).max(0) as u64).div_ceil(1000)))
    };
    let [_, middle, high] = added(0)?;
    let of_misses = if bare.len() > 2 { added(2)?[1] } else { 0 };
    Ok([0, middle.div_ceil(2), 2 * high.max(of_misses)])
}
