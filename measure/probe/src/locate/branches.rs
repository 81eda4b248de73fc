//! Where every direct branch in a file goes: one bit for each byte of text, to say whether something
//! jumps into bytes that a patch would replace; and who calls and who jumps to what begins there.
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use std::ops::Range;

#[derive(Debug, Default)]
pub struct BranchTargets {
    /// Text ranges with their bitmaps.
    maps: Vec<(Range<u64>, Vec<u64>)>,
    jumps: Vec<(u64, u64)>,
    slot_jumps: Vec<(u64, u64)>,
    called: Vec<u64>,
    entered: Vec<u64>,
    /// Addresses taken of what is no start, by which instruction; ascending.
    taken: Vec<(u64, u64)>,
}

impl BranchTargets {
    /// Decodes linearly from every start in `starts` (ascending: functions and their pieces) to the
    /// next, and over what lies between: hand-written code without symbols branches too.
    pub fn sweep(texts: &[(Range<u64>, &[u8])], starts: &[u64]) -> BranchTargets {
        let mut targets = BranchTargets {
            maps: texts
                .iter()
                .map(|(range, _)| {
                    (
                        range.clone(),
                        vec![0; (range.end - range.start).div_ceil(64) as usize],
                    )
                })
                .collect(),
            ..BranchTargets::default()
        };
        let half = starts.len() / 2;
        let middle = starts.get(half).copied().unwrap_or(0);
        // Two halves side by side: this is most of the time that listing a large file takes.
        let (low, high) = std::thread::scope(|scope| {
            let high = scope.spawn(|| collect(texts, starts, middle..u64::MAX));
            let low = collect(texts, starts, 0..middle);
            let high = high.join();
            (
                low,
                high.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        });
        for found in [low, high] {
            for target in found.targets {
                targets.set(target);
            }
            targets.jumps.extend(found.jumps);
            targets.slot_jumps.extend(found.slot_jumps);
            targets.called.extend(found.called);
            targets.entered.extend(found.entered);
            targets.taken.extend(found.taken);
        }
        targets
            .taken
            .retain(|(at, _)| texts.iter().any(|(range, _)| range.contains(at)));
        targets.taken.sort_unstable();
        for list in [&mut targets.called, &mut targets.entered] {
            list.sort_unstable();
            list.dedup();
        }
        targets
    }

    /// Jumps from one start's code out of it: from, to.
    pub fn jumps(&self) -> &[(u64, u64)] {
        &self.jumps
    }

    /// `jmp [rip + slot]`: from, slot.
    pub fn slot_jumps(&self) -> &[(u64, u64)] {
        &self.slot_jumps
    }

    /// Whether a direct call goes to `start`, one of the starts.
    pub fn is_called(&self, start: u64) -> bool {
        self.called.binary_search(&start).is_ok()
    }

    /// Whether a direct jump goes to `start`, one of the starts.
    pub fn is_jumped_to(&self, start: u64) -> bool {
        self.entered.binary_search(&start).is_ok()
    }

    /// Addresses in `range` that instructions elsewhere take (`lea`), but for those of starts.
    pub fn taken(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let first = self.taken.partition_point(|(at, _)| *at < range.start);
        let end = self.taken.partition_point(|(at, _)| *at < range.end);
        let taken = self.taken[first..end].iter();
        let elsewhere = taken.filter(move |(_, from)| !range.contains(from));
        elsewhere.map(|(at, _)| *at)
    }

    fn set(&mut self, at: u64) {
        if let Some((range, bits)) = self.maps.iter_mut().find(|(range, _)| range.contains(&at)) {
            let n = at - range.start;
            bits[(n / 64) as usize] |= 1 << (n % 64);
        }
    }

    pub fn contains(&self, at: u64) -> bool {
        self.maps
            .iter()
            .find(|(range, _)| range.contains(&at))
            .is_some_and(|(range, bits)| {
                let n = at - range.start;
                bits[(n / 64) as usize] >> (n % 64) & 1 == 1
            })
    }

    pub fn any_in(&self, range: Range<u64>) -> bool {
        range.into_iter().any(|at| self.contains(at))
    }
}

#[derive(Default)]
struct Found {
    targets: Vec<u64>,
    jumps: Vec<(u64, u64)>,
    slot_jumps: Vec<(u64, u64)>,
    called: Vec<u64>,
    entered: Vec<u64>,
    taken: Vec<(u64, u64)>,
}

impl Found {
    fn branch(&mut self, ins: &Instruction, starts: &[u64], cut: &[u64]) {
        let target = ins.near_branch_target();
        self.targets.push(target);
        let to_start = starts.binary_search(&target).is_ok();
        if ins.flow_control() == FlowControl::Call {
            if to_start {
                self.called.push(target);
            }
            return;
        }
        if to_start {
            self.entered.push(target);
        }
        if !(cut[0]..cut[1]).contains(&target) {
            self.jumps.push((ins.ip(), target));
        }
    }
}

fn collect(texts: &[(Range<u64>, &[u8])], starts: &[u64], part: Range<u64>) -> Found {
    let mut found = Found::default();
    let mut ins = Instruction::default();
    for (range, bytes) in texts {
        let first = starts.partition_point(|s| *s <= range.start);
        let last = starts.partition_point(|s| *s < range.end);
        let mut cuts = vec![range.start];
        cuts.extend_from_slice(&starts[first..last]);
        cuts.push(range.end);
        for cut in cuts.windows(2).filter(|c| part.contains(&c[0])) {
            let code = &bytes[(cut[0] - range.start) as usize..(cut[1] - range.start) as usize];
            let mut decoder = Decoder::with_ip(64, code, cut[0], DecoderOptions::NONE);
            while decoder.can_decode() {
                decoder.decode_out(&mut ins);
                match ins.flow_control() {
                    FlowControl::UnconditionalBranch
                    | FlowControl::ConditionalBranch
                    | FlowControl::Call => found.branch(&ins, starts, cut),
                    FlowControl::IndirectBranch
                        if ins.code() == Code::Jmp_rm64 && ins.is_ip_rel_memory_operand() =>
                    {
                        let slot = ins.ip_rel_memory_address();
                        found.slot_jumps.push((ins.ip(), slot));
                    }
                    FlowControl::Next
                        if ins.code() == Code::Lea_r64_m && ins.is_ip_rel_memory_operand() =>
                    {
                        let at = ins.ip_rel_memory_address();
                        let inside = cut[0]..cut[1];
                        if !inside.contains(&at) && starts.binary_search(&at).is_err() {
                            found.taken.push((at, ins.ip()));
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_found_and_only_they() {
        // 0x1000: jmp 0x1005; nop x3; 0x1005: jne 0x1000; 0x1007: call 0x1005; jmp [rip]
        let code = [
            0xeb, 0x03, 0x90, 0x90, 0x90, 0x75, 0xf9, 0xe8, 0xf9, 0xff, 0xff, 0xff, 0xff, 0x25, 0,
            0, 0, 0,
        ];
        let targets = BranchTargets::sweep(&[(0x1000..0x1012, &code)], &[0x1000, 0x1005]);
        assert_eq!(targets.jumps(), [(0x1000, 0x1005), (0x1005, 0x1000)]);
        assert_eq!(targets.slot_jumps(), [(0x100c, 0x1012)]);
        assert!(targets.contains(0x1005) && targets.contains(0x1000));
        assert!(!targets.any_in(0x1001..0x1005) && !targets.contains(0x9999));
        assert!(targets.is_called(0x1005) && !targets.is_called(0x1000));
        assert!(targets.is_jumped_to(0x1000) && targets.is_jumped_to(0x1005));
        // Within one start's code, jumps are nobody else's; to where it begins, they are counted.
        let whole = BranchTargets::sweep(&[(0x1000..0x1012, &code)], &[0x1000]);
        assert!(whole.jumps().is_empty() && whole.is_jumped_to(0x1000));
    }
}
