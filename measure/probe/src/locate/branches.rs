//! Targets of every direct branch in a file, one bit for each byte of text: whether something
//! jumps into bytes that a patch would replace.
use super::fragments::piece_at;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use std::ops::Range;

#[derive(Debug, Default)]
pub struct BranchTargets {
    /// Text ranges with their bitmaps.
    maps: Vec<(Range<u64>, Vec<u64>)>,
    jumps: Vec<(u64, u64)>,
}

impl BranchTargets {
    /// Decodes linearly from every start in `starts` (ascending function entries) to the next, and
    /// over what lies between: hand-written code without symbols branches too.
    /// Jumps into the ascending ranges `watched` are kept with where they come from.
    pub fn sweep(
        texts: &[(Range<u64>, &[u8])],
        starts: &[u64],
        watched: &[Range<u64>],
    ) -> BranchTargets {
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
            jumps: Vec::new(),
        };
        let half = starts.len() / 2;
        let middle = starts.get(half).copied().unwrap_or(0);
        // Two halves side by side: this is most of the time that listing a large file takes.
        let (low, high) = std::thread::scope(|scope| {
            let high = scope.spawn(|| collect(texts, starts, watched, middle..u64::MAX));
            let low = collect(texts, starts, watched, 0..middle);
            let high = high.join();
            (
                low,
                high.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        });
        for target in low.targets.into_iter().chain(high.targets) {
            targets.set(target);
        }
        targets.jumps = low.jumps;
        targets.jumps.extend(high.jumps);
        targets
    }

    /// From, to.
    pub fn jumps(&self) -> &[(u64, u64)] {
        &self.jumps
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
}

fn collect(
    texts: &[(Range<u64>, &[u8])],
    starts: &[u64],
    watched: &[Range<u64>],
    part: Range<u64>,
) -> Found {
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
                let branch = matches!(
                    ins.flow_control(),
                    FlowControl::UnconditionalBranch
                        | FlowControl::ConditionalBranch
                        | FlowControl::Call
                );
                if branch {
                    let target = ins.near_branch_target();
                    found.targets.push(target);
                    let jump = ins.flow_control() != FlowControl::Call;
                    if jump && piece_at(watched, target).is_some() {
                        found.jumps.push((ins.ip(), target));
                    }
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
        // 0x1000: jmp +3 (to 0x1005); nop x3; 0x1005: jne 0x1000
        let code = [0xeb, 0x03, 0x90, 0x90, 0x90, 0x75, 0xf9];
        let watched = 0x1005..0x1007;
        let targets = BranchTargets::sweep(
            &[(0x1000..0x1007, &code)],
            &[0x1000],
            std::slice::from_ref(&watched),
        );
        assert_eq!(targets.jumps(), [(0x1000, 0x1005)]);
        assert!(targets.contains(0x1005) && targets.contains(0x1000));
        assert!(!targets.any_in(0x1001..0x1005) && !targets.contains(0x9999));
    }
}
