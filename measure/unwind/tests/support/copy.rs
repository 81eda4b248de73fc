//! A made-up copy: each instruction moved by a growing gap, some with code before it that pushes.
use hopscope_unwind::{Aside, Piece};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::ops::Range;

use super::Memory;

pub struct Copy {
    pub original: Range<u64>,
    pub copy: Range<u64>,
    pub map: Vec<(u64, u64)>,
    pub pushed: Vec<(u64, i32)>,
    pub apart: Vec<Apart>,
}

/// Inserted code that lies behind the copy.
pub struct Apart {
    pub copy: Range<u64>,
    pub svma: u64,
    pub pushed: Vec<(u64, i32)>,
}

impl Copy {
    /// `base`: where it begins.
    pub fn of(memory: &Memory, original: Range<u64>, base: u64) -> Copy {
        let len = (original.end - original.start) as usize;
        let code = memory.at(original.start).unwrap();
        let code = &code[..len.min(code.len())];
        let mut decoder = Decoder::with_ip(64, code, original.start, DecoderOptions::NONE);
        let mut copy = Copy {
            original: original.clone(),
            copy: base..base,
            map: Vec::new(),
            pushed: Vec::new(),
            apart: Vec::new(),
        };
        let mut to = base;
        let mut leaving = vec![original.start];
        while decoder.can_decode() {
            let at = decoder.ip();
            let instruction = decoder.decode();
            let size = instruction.len() as u64;
            if instruction.flow_control() != FlowControl::Next {
                leaving.push(at);
            }
            let n = copy.map.len() as u64;
            // An entry probe lies before what is mapped; all others are in it.
            if n > 0 {
                copy.map.push((at, to));
            }
            if n.is_multiple_of(3) {
                copy.pushed
                    .extend([(to + 1, 8), (to + 3, 24), (to + 5, 8), (to + 7, 0)]);
                to += 8;
            }
            if n == 0 {
                copy.map.push((at, to));
            }
            to += size + n % 4;
        }
        copy.copy.end = to;
        leaving.push(original.end);
        for (n, svma) in leaving.into_iter().enumerate() {
            // Mostly right behind each other.
            to += if n.is_multiple_of(4) { 5 } else { 0 };
            copy.apart.push(Apart {
                copy: to..to + 12,
                svma,
                pushed: vec![(to + 1, 8), (to + 4, 24), (to + 9, 128)],
            });
            to += 12;
        }
        copy
    }

    /// Behind everything.
    pub fn end(&self) -> u64 {
        self.apart.last().map_or(self.copy.end, |a| a.copy.end)
    }

    pub fn asides(&self) -> Vec<Aside<'_>> {
        let all = self.apart.iter().map(|a| Aside {
            copy: a.copy.clone(),
            svma: a.svma,
            pushed: &a.pushed,
        });
        all.collect()
    }

    pub fn piece<'a>(&'a self, asides: &'a [Aside<'a>]) -> Piece<'a> {
        Piece {
            original: self.original.clone(),
            copy: self.copy.clone(),
            map: &self.map,
            pushed: &self.pushed,
            asides,
            landings: &[],
        }
    }

    /// Each instruction with what stands for it.
    pub fn instructions(&self) -> impl Iterator<Item = (u64, Range<u64>)> {
        let ends = self.map[1..].iter().map(|m| m.1).chain([self.copy.end]);
        self.map.iter().zip(ends).enumerate().map(|(n, (m, end))| {
            let begin = if n == 0 { self.copy.start } else { m.1 };
            (m.0, begin..end)
        })
    }

    pub fn pushed_at(&self, offset: u64) -> i64 {
        let after = self.pushed.partition_point(|p| p.0 <= offset);
        after.checked_sub(1).map_or(0, |n| self.pushed[n].1.into())
    }

    pub fn pad(&self, svma: u64) -> Option<u64> {
        let found = self.map.binary_search_by_key(&svma, |m| m.0).ok()?;
        Some(self.map[found].1)
    }
}
