//! `hopscope detach`: undoes what a killed recorder left behind, in forked children too, and
//! saves the records that are still in its rings.
use crate::output::{self, OWNER_ONLY};
use crate::status::show;
use anyhow::{Context, bail};
use clap::Args;
use hopscope_probe::live::found::{self, Found};
use hopscope_probe::live::remove::{self, Extent, Origin};
use hopscope_probe::live::table::{PatchTable, State};
use hopscope_probe::live::{LiveError, clear_leftovers, leftover};
use hopscope_probe::recorder::salvage;
use hopscope_process::AttachError;
use hopscope_process::memory::TargetMemory;
use hopscope_process::{fd_reserve, procfs};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
#[group(required = true)]
pub struct Targets {
    /// Remove probes from this process
    #[arg(short, long, value_name = "PID")]
    pid: Option<i32>,
    /// Remove probes from every process whose recorder no longer runs
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Args)]
pub struct DetachArgs {
    #[command(flatten)]
    targets: Targets,
    /// Search all memory for references to unused copies [default: at most 16 MiB]
    ///
    /// The process is stopped meanwhile, some hundred milliseconds per GiB.
    #[arg(long)]
    search_all: bool,
    /// Save the records still in the rings to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object per line on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct How {
    json: bool,
    search_all: bool,
}

impl How {
    fn extent(&self) -> Extent {
        if self.search_all {
            Extent::All
        } else {
            Extent::Limited
        }
    }
}

impl DetachArgs {
    fn how(&self) -> How {
        How {
            json: self.json,
            search_all: self.search_all,
        }
    }
}

pub fn run(args: DetachArgs) -> anyhow::Result<ExitCode> {
    hopscope_process::fault::arm();
    fd_reserve::raise_limit();
    let mut found = match args.targets.pid {
        Some(pid) => {
            if !std::fs::exists(format!("/proc/{pid}")).unwrap_or(false) {
                bail!("no process {pid}");
            }
            finish_calls(&[pid]);
            found::in_process(pid)
        }
        None => found::everywhere(),
    };
    found.retain(|f| f.header.is_some());
    let only_descriptors = close_descriptors(args.targets.pid, args.json)?;
    if only_descriptors {
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        match args.targets.pid {
            Some(pid) => crate::status::say!("process {pid} has no probes"),
            None => crate::status::say!("no process carries probes"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut clean = Clean::new(None, args.output.as_deref(), args.how());
    clean.all(&found);
    Ok(match (clean.failed, clean.frozen) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(1),
        _ => ExitCode::from(2),
    })
}

/// The guardian's call: cleans what the recorder with this pid left in `targets` and their children.
pub fn after_recorder(recorder: i32, targets: &[i32], output: Option<&Path>) -> anyhow::Result<()> {
    fd_reserve::raise_limit();
    finish_calls(targets);
    let mut clean = Clean::new(Some(recorder), output, How::default());
    // Its own targets first: nothing that another process pretends comes before them.
    let mut own: Vec<Found> = targets.iter().flat_map(|p| found::in_process(*p)).collect();
    own.retain(|f| f.header.is_some());
    clean.all(&own);
    // Then what shares their arenas, then what says so: a target that has ended leaves children.
    let mut others = found::everywhere();
    others.retain(|f| f.header.is_some() && !targets.contains(&f.pid));
    let (children, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|f| own.iter().any(|o| o.inode == f.inode));
    clean.all(&children);
    clean.strangers = true;
    clean.all(&others);
    close_descriptors(None, false).map(drop)
}

/// Whether the recorder with this pid, which has ended, left a jump in one of `targets`.
pub fn has_left(recorder: i32, targets: &[i32]) -> bool {
    let left = |f: &Found| {
        let memory = TargetMemory::open(f.pid)?;
        if f.state(&memory)? != State::Patched {
            return Ok(false);
        }
        let (table, _) = f.table(&memory)?;
        let its = table.recorder == recorder && f.belongs(&table);
        Ok(its && found::is_patched(&memory, &table))
    };
    let mut found = targets.iter().flat_map(|pid| found::in_process(*pid));
    found.any(|f| {
        left(&f).unwrap_or_else(|e: LiveError| {
            log::info!("process {}: {e}", f.pid);
            false
        })
    })
}

/// A recorder killed early leaves nothing to see in a target that is yet to make its first call.
fn finish_calls(pids: &[i32]) {
    for &pid in pids {
        let seen = !found::in_process(pid).is_empty() || found::has_descriptors(pid);
        if seen || !found::may_be_in_a_call(pid) {
            continue;
        }
        if let Err(e) = remove::finish_call(pid) {
            crate::status::say!("not known whether a killed recorder left a call unfinished: {e}");
        }
    }
}

/// What is left of an attach that was killed before it mapped anything; true when there was any.
fn close_descriptors(pid: Option<i32>, json: bool) -> anyhow::Result<bool> {
    let mut pids = found::with_descriptors_only();
    pids.retain(|p| pid.is_none_or(|pid| pid == *p));
    for pid in &pids {
        match remove::close_descriptors(*pid) {
            Ok(()) if json => {
                let line =
                    serde_json::json!({"type": "descriptors_closed", "schema": 1, "pid": pid});
                println!("{line}");
            }
            Ok(()) => show!("process {pid}: descriptors of an unfinished attach closed"),
            Err(e) => crate::status::say!("process {pid}: {e}"),
        }
    }
    Ok(!pids.is_empty())
}

/// Cleaning process after process. Whatever one of them holds, the others are seen to.
struct Clean<'a> {
    /// Only what this recorder left; `None`: what any left that is gone.
    of: Option<i32>,
    output: Option<&'a Path>,
    how: How,
    /// Most of what is looked at now is none of ours to restore, and needs no word.
    strangers: bool,
    failed: usize,
    /// What is restored, and cannot be taken away before somebody thaws the process.
    frozen: usize,
    /// Arenas whose records are saved, or that had none.
    salvaged: Vec<u64>,
}

/// What decides about the order. The table itself is read again when its turn has come: it may be
/// large, and children that share it may be many.
struct Seen<'a> {
    found: &'a Found,
    target: i32,
    retired: bool,
}

impl<'a> Clean<'a> {
    fn new(of: Option<i32>, output: Option<&'a Path>, how: How) -> Clean<'a> {
        Clean {
            of,
            output,
            how,
            strangers: false,
            failed: 0,
            frozen: 0,
            salvaged: Vec::new(),
        }
    }

    fn fail(&mut self, pid: i32, why: impl std::fmt::Display) {
        self.failed += 1;
        crate::status::say!("process {pid}: {why}");
    }

    fn all(&mut self, found: &[Found]) {
        let mut unused = BTreeSet::new();
        // Each is finished before the next table is read: what another user's process wrote there
        // takes time, and keeps none of those before it from being restored.
        for arena in by_arena(found) {
            let mut seen: Vec<Seen> = arena.into_iter().filter_map(|f| self.look(f)).collect();
            // The process that was attached to first: its restoration covers its forked children.
            seen.sort_by_key(|s| (s.found.pid != s.target, s.found.pid));
            for s in seen.iter().filter(|s| !s.retired) {
                if let Err(e) = self.one(s.found) {
                    self.fail(s.found.pid, format_args!("{e:#}"));
                }
            }
            unused.extend(seen.iter().filter(|s| s.retired).map(|s| s.found.pid));
        }
        for pid in unused {
            match take_away(pid, &self.how) {
                Ok(()) => {}
                Err(LiveError::Attach(AttachError::Frozen { .. })) => {
                    self.frozen += 1;
                    crate::status::say!(
                        "process {pid} is frozen by its control group: unused copies stay mapped; run this once it is thawed"
                    );
                }
                Err(e) => self.fail(pid, e),
            }
        }
    }

    /// `None` for what is not to be cleaned.
    fn look<'f>(&mut self, found: &'f Found) -> Option<Seen<'f>> {
        let Ok(memory) = TargetMemory::open(found.pid) else {
            // Gone meanwhile, or not ours to touch.
            let there = std::fs::exists(format!("/proc/{}/maps", found.pid)).unwrap_or(false);
            if there && self.of.is_none() {
                self.fail(found.pid, "no permission to restore it");
            }
            return None;
        };
        let (table, state) = match found.table(&memory) {
            Ok(read) => read,
            Err(e) if self.strangers => {
                log::info!("process {}: {e}", found.pid);
                return None;
            }
            Err(e) => {
                self.fail(found.pid, e);
                return None;
            }
        };
        if self.of.is_some_and(|recorder| table.recorder != recorder) {
            return None;
        }
        if !found.belongs(&table) {
            self.fail(found.pid, LiveError::NotExecuted { pid: found.pid });
            return None;
        }
        Some(Seen {
            found,
            target: table.target,
            retired: leftover::is_retired(&table, state),
        })
    }

    fn one(&mut self, f: &Found) -> anyhow::Result<()> {
        let now = found::in_process(f.pid);
        let Some(f) = now.iter().find(|now| now.inode == f.inode) else {
            return Ok(()); // went with its parent
        };
        let memory = TargetMemory::open(f.pid)?;
        let (table, state) = f.table(&memory)?;
        if self.of.is_none() && found::recorder_alive(&table) {
            bail!(
                "is being recorded by hopscope, pid {}; stop that one instead",
                table.recorder
            );
        }
        // Before the first byte changed there was nothing to record.
        let has_records = state != State::Prepared && table.pool.len > 0;
        let has_records = has_records && !self.salvaged.contains(&f.inode);
        let path = self
            .output
            .filter(|_| has_records)
            .map(|path| match self.salvaged.len() {
                0 => path.to_owned(),
                n => path.with_extension(format!("{n}.hop")),
            });
        self.salvaged.push(f.inode);
        let frozen = restore(f, &memory, &table, state, path.as_deref(), &self.how)?;
        self.frozen += usize::from(frozen);
        Ok(())
    }
}

/// Those that share an arena together. First those of root and of this user, who have nothing to
/// gain, then by the size of what is to be read.
fn by_arena(found: &[Found]) -> Vec<Vec<&Found>> {
    let us = nix::unistd::geteuid().as_raw();
    let mut arenas: BTreeMap<u64, Vec<&Found>> = BTreeMap::new();
    for f in found {
        arenas.entry(f.inode).or_default().push(f);
    }
    let mut arenas: Vec<_> = arenas.into_values().collect();
    arenas.sort_by_cached_key(|arena| {
        let uid = |f: &&Found| procfs::uid(f.pid);
        let trusted = arena
            .iter()
            .filter_map(uid)
            .all(|uid| uid == 0 || uid == us);
        let bytes = arena.iter().filter_map(|f| f.header).map(|h| h.len).max();
        (!trusted, bytes, arena[0].pid)
    });
    arenas
}

/// Copies that were in use, or seemed to be, when their recording ended.
fn take_away(pid: i32, how: &How) -> Result<(), LiveError> {
    let taken = clear_leftovers::take_away(pid, how.extent())?;
    if how.json {
        let line = serde_json::json!({
            "type": "taken_away", "schema": 1, "pid": pid, "recordings": taken.recordings,
            "bytes": taken.bytes, "pause_ns": taken.pause.as_nanos() as u64, "notes": taken.notes,
        });
        println!("{line}");
    } else {
        show!(
            "process {pid}: removed unused copies of {} recordings ({} KiB)",
            taken.recordings,
            taken.bytes >> 10
        );
        for note in &taken.notes {
            show!("  {note}");
        }
    }
    Ok(())
}

fn save(table: &PatchTable, memory: &TargetMemory, path: &Path) -> anyhow::Result<()> {
    let (file, mut place) = output::create(path, OWNER_ONLY)?;
    // The rings are not there for a second try.
    place.keep();
    let saved = salvage::salvage(table, memory, BufWriter::new(file))
        .with_context(|| format!("saving records to {}", path.display()))?;
    place.put()?;
    crate::status::say!(
        "salvaged {} records into {} ({} lost, {} torn)",
        saved.recorded,
        path.display(),
        saved.lost,
        saved.torn
    );
    if saved.damaged > 0 {
        crate::status::say!(
            "{} rings could not be read, or were overwritten by the target; their records are missing",
            saved.damaged
        );
    }
    Ok(())
}

/// Entries first, then the records (nothing writes any more), then what is mapped. True when that has
/// to stay because the process is frozen.
fn restore(
    f: &Found,
    memory: &TargetMemory,
    table: &PatchTable,
    state: State,
    output: Option<&Path>,
    how: &How,
) -> anyhow::Result<bool> {
    let origin = Origin::Arena(f.inode);
    let mut detached = remove::restore_all(f.pid, memory, table, f.inode, state, origin)?;
    if let Some(path) = output {
        save(table, memory, path)?;
    }
    let reaping = remove::reap_noted(
        f.pid,
        memory,
        table,
        remove::Arena::Mapped,
        how.extent(),
        &mut detached.notes,
    );
    detached.pause = detached.pause.max(reaping.pause);
    if how.json {
        let line = serde_json::json!({
            "type": "detached", "schema": 1, "pid": f.pid,
            "functions": detached.restored, "pause_ns": detached.pause.as_nanos() as u64,
            "notes": detached.notes,
        });
        println!("{line}");
    } else {
        show!(
            "process {}: {} functions restored",
            f.pid,
            detached.restored
        );
        for note in &detached.notes {
            show!("  {note}");
        }
    }
    Ok(reaping.frozen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_probe::live::table::Area;

    /// The larger a table is, the longer the others would wait for it.
    #[test]
    fn those_that_share_an_arena_come_together_and_small_ones_first() {
        let found = |pid, inode, len| Found {
            pid,
            inode,
            header: Some(Area { at: 0x1000, len }),
            code: Vec::new(),
        };
        let us = std::process::id() as i32;
        let all = [
            found(us, 7, 1 << 30),
            found(us, 8, 4096),
            found(us + 1, 7, 1 << 30),
        ];
        let order = by_arena(&all);
        let inodes: Vec<Vec<u64>> = order
            .iter()
            .map(|arena| arena.iter().map(|f| f.inode).collect())
            .collect();
        assert_eq!(inodes, [vec![8], vec![7, 7]]);
    }
}
