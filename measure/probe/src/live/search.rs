//! What in a stopped process refers to copies: a register, a stack, any other memory of its own.
use super::error::LiveError;
use super::pages::{self, Hit};
use super::searched;
use super::survey::{Extent, Survey};
use super::table::PatchTable;
use hopscope_process::StoppedProcess;
use hopscope_process::maps;
use std::ops::Range;

/// Why the copies of each table must stay, if they must, and the words that say so.
pub(super) struct References {
    pub whys: Vec<Option<String>>,
    pub hits: Vec<Hit>,
}

/// `all`: every word is wanted, not only one for each table.
pub(super) fn references(
    stopped: &StoppedProcess,
    survey: &mut Survey<'_>,
    tables: &[&PatchTable],
    extent: Extent,
    all: bool,
) -> Result<References, LiveError> {
    let pid = stopped.pid();
    let mut sought = Sought::new(tables);
    for tid in stopped.tids() {
        let r = stopped.regs(tid);
        let registers = [
            r.rip, r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15,
        ];
        for word in registers {
            sought.see(word, || format!("thread {tid} is inside a copy"));
        }
    }
    let mut hits: Vec<Hit> = Vec::new();
    let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
    let dead = match tables.iter().any(|t| t.switches_stacks) {
        true => Vec::new(),
        false => searched::dead_zones(stopped, survey.reader.memory, &mappings),
    };
    let mut budget = extent.stopped_bytes();
    for m in &mappings {
        if sought.all_found() && !all {
            break;
        }
        let Some(wanted) = searched::pages(m, survey.ours()) else {
            continue;
        };
        let tracked = survey.tracked().filter(|t| t.is_registered(&m.range));
        let (mut found, runs) = match tracked {
            Some(t) => {
                let written = t.track.written(&m.range, wanted);
                let mut runs = written.map_err(LiveError::io(pid, "asking for its writes"))?;
                let begin = t.hits.partition_point(|h| h.at < m.range.start);
                let known = t.hits[begin..].iter();
                let known = known.take_while(|h| h.at < m.range.end);
                let known = known.filter(|h| !pages::contain(&runs, h.at));
                let known: Vec<Hit> = known.copied().collect();
                let unread = t.unread.iter().filter(|r| m.range.contains(&r.start));
                runs.extend(unread.cloned());
                if t.overflow {
                    sought.give_up("more than 65,536 words refer to copies");
                }
                (known, runs)
            }
            None => {
                let Some(runs) = pages::resident(pid, &m.range, wanted)? else {
                    sought.give_up("a mapping of more than 16 GiB would have to be searched");
                    break;
                };
                (Vec::new(), runs)
            }
        };
        let runs: Vec<Range<u64>> = runs.iter().flat_map(|r| without(r, &dead)).collect();
        let bytes = pages::bytes_of(&runs);
        if bytes > budget {
            sought.give_up(&format!(
                "more than {} MiB of memory would have to be searched for references while it is stopped",
                extent.stopped_bytes() >> 20
            ));
            break;
        }
        budget -= bytes;
        for run in &runs {
            // One that counts: a page read for its live part begins with old return addresses.
            let live = |found: &[Hit]| found.iter().any(|h| !pages::contain(&dead, h.at));
            let enough = |found: &[Hit]| !all && tables.len() == 1 && live(found);
            if let Err(e) = survey.reader.read(run, &mut found, &enough) {
                // What cannot be read may refer to anything.
                sought.give_up(&format!("memory at {:#x} cannot be read: {e}", run.start));
            }
        }
        found.retain(|h| !pages::contain(&dead, h.at));
        for &Hit { at, word } in &found {
            sought.see(word, || {
                format!("memory at {at:#x} refers to a copy (a stack in use, or an old value)")
            });
        }
        hits.append(&mut found);
    }
    let whys = sought.whys;
    Ok(References { whys, hits })
}

/// Whole pages of `run` that do not lie in one of the ascending `zones`.
fn without(run: &Range<u64>, zones: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut rest = Vec::new();
    let mut at = run.start;
    let first = zones.partition_point(|z| z.end <= run.start);
    for zone in zones[first..].iter().take_while(|z| z.start < run.end) {
        let (low, high) = (
            zone.start.next_multiple_of(pages::PAGE),
            zone.end & !(pages::PAGE - 1),
        );
        if low < high {
            rest.extend((at < low).then_some(at..low.min(run.end)));
            at = at.max(high);
        }
    }
    rest.extend((at < run.end).then_some(at..run.end));
    rest
}

struct Sought {
    /// Ascending: where copies lie, and whose.
    segments: Vec<(Range<u64>, usize)>,
    whys: Vec<Option<String>>,
    open: usize,
}

impl Sought {
    fn new(tables: &[&PatchTable]) -> Sought {
        let mut segments: Vec<(Range<u64>, usize)> = tables
            .iter()
            .enumerate()
            .flat_map(|(n, t)| t.segments.iter().map(move |s| (s.at..s.at + s.len, n)))
            .collect();
        segments.sort_by_key(|(range, _)| range.start);
        Sought {
            segments,
            whys: vec![None; tables.len()],
            open: tables.len(),
        }
    }

    fn see(&mut self, word: u64, why: impl FnOnce() -> String) {
        let after = self.segments.partition_point(|(r, _)| r.start <= word);
        let Some((range, owner)) = after.checked_sub(1).map(|i| &self.segments[i]) else {
            return;
        };
        if word < range.end && self.whys[*owner].is_none() {
            self.whys[*owner] = Some(why());
            self.open -= 1;
        }
    }

    fn all_found(&self) -> bool {
        self.open == 0
    }

    fn give_up(&mut self, why: &str) {
        for open in self.whys.iter_mut().filter(|w| w.is_none()) {
            *open = Some(why.to_owned());
        }
        self.open = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_dead_pages_are_not_read() {
        let zones = [0x1800..0x4800, 0x6000..0x7000];
        assert_eq!(
            without(&(0x1000..0x8000), &zones),
            [0x1000..0x2000, 0x4000..0x6000, 0x7000..0x8000]
        );
        assert_eq!(without(&(0x2000..0x3000), &zones), []);
        let one = |run| match &without(&run, &zones)[..] {
            [one] => one.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(one(0x8000..0x9000), 0x8000..0x9000);
        assert_eq!(one(0x1000..0x3000), 0x1000..0x2000);
    }
}
