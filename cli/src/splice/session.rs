//! An accelerator from its start to its end, and what it says of itself.
use super::args::Common;
use super::eligibility::{Kernel, Watch, check_pair, options, say_what_is_not_seen};
use super::keeper::{Keeper, Line};
use anyhow::Context;
use hopscope_splice::cgroup::Group;
use hopscope_splice::joining::Joining;
use hopscope_splice::pairing::{Pairing, Pairs};
use hopscope_splice::programs::{Accelerator, Count, Counts, End};
use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at what happened.
pub(super) const POLL: Duration = Duration::from_millis(5);
const WATCH: Duration = Duration::from_millis(200);
/// Between two looks at connections, at least; and so many times what a look takes.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_SHARE: u32 = 50;

pub(super) struct Session<'a> {
    accelerator: Accelerator,
    keeper: Keeper,
    watch: Watch,
    watched: Instant,
    joining: Joining,
    pairing: Pairing,
    /// Processes of which it was said that their threads are placed.
    said: HashSet<[u32; 2]>,
    /// Why devices could not be watched.
    unwatched: HashSet<String>,
    begun: Instant,
    look_next: Instant,
    common: &'a Common,
    group: Option<&'a Group>,
}

impl<'a> Session<'a> {
    /// `group`: of the command that is run, which goes with the session.
    pub(super) fn start(
        common: &'a Common,
        groups: Vec<PathBuf>,
        group: Option<&'a Group>,
        kernel: &Kernel,
    ) -> anyhow::Result<Session<'a>> {
        check_pair(common)?;
        let line = Line::new()?;
        let mut watch = Watch::new(groups.clone(), kernel);
        let came_before = watch.begin(common)?;
        let mut options = options(common, groups, kernel);
        options.refused.extend(came_before);
        let accelerator = Accelerator::start(&options)?;
        let keeper = Keeper::start(line, group)?;
        say_what_is_not_seen();
        if let Some(why) = accelerator.why_no_resets() {
            log::warn!(
                "a connection closed with redirected bytes unread ends in order here, where TCP resets it (Linux 6.6 \
                 and newer do): {why}"
            );
        }
        if let Some(path) = &common.ready_file {
            std::fs::write(path, "").with_context(|| path.display().to_string())?;
        }
        Ok(Session {
            accelerator,
            keeper,
            watch,
            watched: Instant::now(),
            joining: Joining::new(common.blocking, common.across_users),
            pairing: Pairing::new(common.across_users, common.pair_anyway),
            said: HashSet::new(),
            unwatched: HashSet::new(),
            begun: Instant::now(),
            look_next: Instant::now(),
            common,
            group,
        })
    }

    /// To be called again and again.
    pub(super) fn look(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        if begun >= self.look_next {
            let mut ends = self.accelerator.ends_seen()?;
            // Once for each device, and no part of what each look takes.
            let watching = Instant::now();
            self.watch_devices(&mut ends)?;
            let watching = watching.elapsed();
            let refused = if ends.is_empty() {
                HashSet::new()
            } else {
                self.watch.refused_sockets()
            };
            self.joining.look(&self.accelerator, &ends, &refused)?;
            self.pair(&ends)?;
            self.look_next = Instant::now() + LOOK.max((begun.elapsed() - watching) * LOOK_SHARE);
        }
        if self.watched.elapsed() >= WATCH {
            self.watched = Instant::now();
            self.watch.again(&self.accelerator, self.common)?;
            self.say_wrong()?;
        }
        Ok(())
    }

    fn watch_devices(&mut self, ends: &mut [End]) -> anyhow::Result<()> {
        let pids = || self.watch.processes();
        for error in self.accelerator.watch_devices(ends, pids)? {
            let error = error.to_string();
            if !self.unwatched.contains(&error) {
                crate::status::say!("{error}: connections that send by it stay on TCP");
                self.unwatched.insert(error);
            }
        }
        Ok(())
    }

    fn pair(&mut self, ends: &[End]) -> anyhow::Result<()> {
        let Some(placed) = self.accelerator.placed() else {
            return Ok(());
        };
        if !self.keeper.is_there()? {
            self.pairing.end(placed)?;
            anyhow::bail!(
                "the keeper has exited and could not restore the CPU affinity that --pair sets"
            );
        }
        let now_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        for pairs in self.pairing.look(ends, now_ns, placed)? {
            self.say_paired(&pairs);
        }
        Ok(())
    }

    /// Once of the same two processes; all times are counted.
    fn say_paired(&mut self, pairs: &Pairs) {
        let [client, server] = pairs.processes;
        if self.said.insert(pairs.processes) {
            crate::status::say!(
                "a thread of process {client} and one of {server} take turns: both run on processor {} \
                 for as long as they do (--pair)",
                pairs.processor
            );
        }
    }

    fn say_wrong(&self) -> anyhow::Result<()> {
        for wrong in self.accelerator.take_wrong()? {
            crate::status::say!("{wrong}");
        }
        Ok(())
    }

    fn counts(&self) -> anyhow::Result<Counts> {
        self.say_wrong()?;
        let (counts, wrong) = self.accelerator.final_counts()?;
        for wrong in wrong {
            crate::status::say!("{wrong}");
        }
        self.say_not_reset(&counts);
        Ok(counts)
    }

    fn say_not_reset(&self, counts: &Counts) {
        let fins = counts
            .get(Count::ClosedUnread)
            .saturating_sub(counts.get(Count::ResetUnread));
        if fins == 0 || self.accelerator.why_no_resets().is_some() {
            return;
        }
        let ends = if fins == 1 { "end" } else { "ends" };
        crate::status::say!(
            "{fins} {ends} closed with unread bytes sent a FIN, where TCP resets the connection: an end that was shut \
             down before, whose FIN waits for room at its peer, or behind another tcx program that returns TCX_PASS"
        );
    }

    /// From here on everything takes TCP; waits for what is unread. A signal more, and it does not wait:
    /// sockets that are joined then hold what they need until they are closed.
    pub(super) fn end(mut self, signals: &Signals) -> anyhow::Result<Counts> {
        if let Some(placed) = self.accelerator.placed() {
            self.pairing.end(placed)?;
        }
        self.watch.again(&self.accelerator, self.common)?;
        self.accelerator.stop()?;
        let before = signals.count();
        while !self.keeper.is_done()? {
            if signals.count() > before {
                let ends = self.accelerator.ends_seen()?;
                let left: Vec<&End> = ends.iter().filter(|end| end.is(End::JOINED)).collect();
                let bytes: u64 = left.iter().map(|end| end.queued).sum();
                crate::status::say!(
                    "not waited for: {} sockets with {bytes} unread bytes stay in the map until they \
                     are closed",
                    left.len()
                );
                let counts = self.counts()?;
                self.keeper.give_up();
                if let Some(group) = self.group {
                    group.leave()?;
                }
                return Ok(counts);
            }
            std::thread::sleep(POLL);
        }
        self.counts()
    }
}

/// Ctrl-C and its like, counted.
pub(super) struct Signals(Arc<AtomicUsize>);

impl Signals {
    pub(super) fn take() -> anyhow::Result<Signals> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let count = Arc::new(AtomicUsize::new(0));
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
            .context("taking over signals")?;
        let counted = count.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Signals(count))
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

pub(super) fn to_json(counts: &Counts, kind: &str) -> serde_json::Value {
    let mut line = serde_json::json!({ "type": kind, "schema": 1 });
    for (count, value) in counts.iter() {
        line[count.name()] = value.into();
    }
    line
}

/// Totals, and every reason that there was.
pub(super) fn write(out: &mut impl Write, counts: &Counts) -> std::io::Result<()> {
    writeln!(
        out,
        "{} connections; {} messages ({} bytes) redirected, {} ({} bytes) over TCP",
        counts.get(Count::Connections),
        counts.get(Count::DirectMessages),
        counts.get(Count::DirectBytes),
        counts.get(Count::TcpMessages),
        counts.get(Count::TcpBytes)
    )?;
    for (count, value) in counts.iter().skip(Count::TcpBytes as usize + 1) {
        if value > 0 {
            writeln!(out, "  {:<21} {value:>12}  {}", count.name(), count.what())?;
        }
    }
    Ok(())
}
