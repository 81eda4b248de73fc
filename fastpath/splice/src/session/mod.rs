//! An accelerator from its start to its end, and what it says of itself.
mod drained;
mod error;
mod keeper;
mod kernel;
mod policies;
mod watch;

pub use crate::programs::tell;
pub use error::SessionError;
pub use keeper::keep;
pub use kernel::Kernel;
pub use policies::refuse_policies;

use crate::cgroup::Group;
use crate::edges::Edges;
use crate::joining::Joining;
use crate::pairing::{Pairing, Pairs};
use crate::peeking::Peeking;
use crate::programs::{Accelerator, Count, Counts, End, Options};
use crate::unseen::Unseen;
use keeper::{Keeper, Line};
use policies::check_pair;
use std::collections::HashSet;
use std::fmt::Arguments;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};
use watch::Watch;

/// Tells whoever started it something, in a line.
pub type Say = fn(Arguments<'_>);

/// A process beside an accelerator, in which a program calls with the words that are added to its command:
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// [`keep`]
    Keeper,
    /// [`tell`]
    Edges,
}

/// Its command.
pub type HelperCommand = fn(Helper) -> Command;

/// Between two looks at what happened.
pub const POLL: Duration = Duration::from_millis(5);
const WATCH: Duration = Duration::from_millis(200);
/// Between two looks at connections, at least; and so many times what a look takes.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_SHARE: u32 = 50;

pub struct Session<'a> {
    accelerator: Accelerator,
    keeper: Keeper,
    helper: HelperCommand,
    /// That no keeper starts was said.
    is_unkept: bool,
    watch: Watch,
    watched: Instant,
    joining: Joining,
    /// Where the kernel takes the program.
    edges: Option<Edges>,
    unseen: Unseen,
    peeking: Peeking,
    pairing: Pairing,
    /// Processes of which it was said that their threads are placed.
    said: HashSet<[u32; 2]>,
    /// Why devices could not be watched.
    unwatched: HashSet<String>,
    begun: Instant,
    look_next: Instant,
    group: Option<&'a Group>,
    say: Say,
}

impl<'a> Session<'a> {
    /// `group`: of the command that is run, which goes with the session.
    /// `pair_anyway`: pairs are placed even where they do not become faster.
    ///
    /// # Errors
    /// It cannot be done here, or somebody would be hurt.
    pub fn start(
        mut options: Options,
        pair_anyway: bool,
        group: Option<&'a Group>,
        kernel: &Kernel,
        helper: HelperCommand,
        say: Say,
    ) -> Result<Session<'a>, SessionError> {
        check_pair(options.pair)?;
        let line = Line::new()?;
        let mut watch = Watch::new(&options, kernel, say);
        let came_before = watch.begin(&options)?;
        options.refused = kernel.refused(&options.allowed);
        options.refused.extend(came_before);
        options.refused_versions = kernel.refused_versions(&options.allowed);
        let accelerator = Accelerator::start(&options)?;
        let keeper = Keeper::start(helper(Helper::Keeper), line, group)?;
        let edges = Edges::start(helper(Helper::Edges), accelerator.edge_maps()?);
        if let Err(why) = &edges {
            log::warn!(
                "a reader that waits for edges (EPOLLET) may wait for ever when its connection returns to TCP: {why}"
            );
        }
        log::warn!(
            "bytes that take the short cut are no packets: captures, firewall and conntrack counters, and \
             TCP_INFO do not see them"
        );
        if let Some(why) = accelerator.why_no_resets() {
            log::warn!(
                "a connection closed with redirected bytes unread ends in order here, where TCP resets it (Linux 6.6 \
                 and newer do): {why}"
            );
        }
        Ok(Session {
            accelerator,
            keeper,
            helper,
            is_unkept: false,
            watch,
            watched: Instant::now(),
            joining: Joining::new(options.blocking, options.across_users),
            edges: edges.ok(),
            unseen: Unseen::default(),
            peeking: Peeking::default(),
            pairing: Pairing::new(options.across_users, pair_anyway),
            said: HashSet::new(),
            unwatched: HashSet::new(),
            begun: Instant::now(),
            look_next: Instant::now(),
            group,
            say,
        })
    }

    /// To be called again and again.
    pub fn look(&mut self) -> Result<(), SessionError> {
        let begun = Instant::now();
        if begun >= self.look_next {
            let is_kept = self.keep()?;
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
            self.show_peekers(&ends)?;
            // What is released below has no redirected bytes any more, and may have TCP's behind them.
            if let Some(edges) = &mut self.edges {
                self.unseen.look(&ends, edges);
            }
            self.joining.look(&self.accelerator, &ends, &refused)?;
            if is_kept {
                self.pair(&ends)?;
            }
            self.look_next = Instant::now() + LOOK.max((begun.elapsed() - watching) * LOOK_SHARE);
        }
        if self.watched.elapsed() >= WATCH {
            self.watched = Instant::now();
            self.watch.again(&self.accelerator)?;
            self.say_wrong()?;
        }
        Ok(())
    }

    /// A keeper that was killed has another one in its place; false: there is none now, who would restore masks.
    fn keep(&mut self) -> Result<bool, SessionError> {
        let Some(status) = self.keeper.ended()? else {
            return Ok(true);
        };
        match (self.keeper).replace((self.helper)(Helper::Keeper), self.group) {
            Ok(pid) => {
                self.is_unkept = false;
                (self.say)(format_args!(
                    "the keeper has ended ({status}); process {pid} takes its place"
                ));
                Ok(true)
            }
            Err(why) => {
                if !std::mem::replace(&mut self.is_unkept, true) {
                    (self.say)(format_args!(
                        "the keeper has ended ({status}), and no other one starts: {why}; trying again"
                    ));
                }
                if let Some(placed) = self.accelerator.placed() {
                    self.pairing.end(placed)?;
                }
                Ok(false)
            }
        }
    }

    fn show_peekers(&mut self, ends: &[End]) -> Result<(), SessionError> {
        let orders = self.peeking.look(ends).into_iter();
        let orders: Vec<_> = orders.map(|(end, order)| (end, order, None)).collect();
        if !orders.is_empty() {
            self.accelerator.order(&orders)?;
        }
        Ok(())
    }

    fn watch_devices(&mut self, ends: &mut [End]) -> Result<(), SessionError> {
        let pids = || self.watch.processes();
        for error in self.accelerator.watch_devices(ends, pids)? {
            let error = error.to_string();
            if !self.unwatched.contains(&error) {
                (self.say)(format_args!(
                    "{error}: connections that send by it stay on TCP"
                ));
                self.unwatched.insert(error);
            }
        }
        Ok(())
    }

    fn pair(&mut self, ends: &[End]) -> Result<(), SessionError> {
        let Some(placed) = self.accelerator.placed() else {
            return Ok(());
        };
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
            (self.say)(format_args!(
                "a thread of process {client} and one of {server} take turns: both run on processor {} \
                 for as long as they do (--pair)",
                pairs.processor
            ));
        }
    }

    fn say_wrong(&self) -> Result<(), SessionError> {
        for wrong in self.accelerator.take_wrong()? {
            (self.say)(format_args!("{wrong}"));
        }
        Ok(())
    }

    fn counts(&self) -> Result<Counts, SessionError> {
        self.say_wrong()?;
        let (counts, wrong) = self.accelerator.final_counts()?;
        for wrong in wrong {
            (self.say)(format_args!("{wrong}"));
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
        (self.say)(format_args!(
            "{fins} {ends} closed with unread bytes sent a FIN, where TCP resets the connection: an end that was shut \
             down before, whose FIN waits for room at its peer, or behind another tcx program that returns TCX_PASS"
        ));
    }

    /// The keeper has done its work, or none can.
    fn is_drained(&mut self) -> Result<bool, SessionError> {
        match self.keeper.ended()? {
            None => Ok(false),
            Some(status) if status.signal().is_some() => Ok(!self.keep()?),
            Some(_) => Ok(true),
        }
    }

    /// From here on everything takes TCP; waits for what is unread. A signal more, and it does not wait:
    /// sockets that are joined then hold what they need until they are closed.
    pub fn end(mut self, signals: &dyn Fn() -> usize) -> Result<Counts, SessionError> {
        if let Some(placed) = self.accelerator.placed() {
            self.pairing.end(placed)?;
        }
        self.watch.again(&self.accelerator)?;
        self.accelerator.stop()?;
        let before = signals();
        self.keeper.tell();
        while !self.is_drained()? {
            if signals() > before {
                let ends = self.accelerator.ends_seen()?;
                let left: Vec<&End> = ends.iter().filter(|end| end.is(End::JOINED)).collect();
                let bytes: u64 = left.iter().map(|end| end.queued).sum();
                (self.say)(format_args!(
                    "not waited for: {} sockets with {bytes} unread bytes stay in the map until they \
                     are closed",
                    left.len()
                ));
                let counts = self.counts()?;
                self.keeper.give_up();
                if let Some(group) = self.group {
                    group.leave()?;
                }
                return Ok(counts);
            }
            if Instant::now() >= self.look_next {
                self.look_next = Instant::now() + LOOK;
                let ends = self.accelerator.ends_seen()?;
                self.show_peekers(&ends)?;
            }
            std::thread::sleep(POLL);
        }
        self.counts()
    }
}
