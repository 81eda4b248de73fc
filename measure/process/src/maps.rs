//! `/proc/PID/maps`: what is mapped, and where there is room.
use crate::{memfd, procfs};
use std::io;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    pub range: Range<u64>,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    pub shared: bool,
    pub offset: u64,
    /// Major and minor number of the device that the inode is of.
    pub device: (u64, u64),
    pub inode: u64,
    /// Empty for anonymous memory; may end in ` (deleted)`.
    pub name: String,
}

impl Mapping {
    /// Whether it is of a memfd, whatever its name says.
    pub fn is_memfd(&self) -> bool {
        self.inode != 0 && memfd::device().is_ok_and(|d| d == self.device)
    }
}

/// Mappings of a process, ascending.
pub fn read(pid: i32) -> io::Result<Vec<Mapping>> {
    let of = |id: i32| procfs::text(&format!("/proc/{id}/maps"));
    let own = of(pid);
    // Of a main thread that has ended there is nothing to be seen.
    let text = match &own {
        Ok(text) if !text.is_empty() => own?,
        _ => match procfs::memory_holder(pid) {
            holder if holder != pid => of(holder)?,
            _ => own?,
        },
    };
    Ok(parse(&text))
}

/// Lines that do not look like the kernel's are left out.
pub fn parse(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (low, high) = fields.next()?.split_once('-')?;
    let low = u64::from_str_radix(low, 16).ok()?;
    let high = u64::from_str_radix(high, 16).ok()?;
    let modes = fields.next()?.as_bytes();
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let major = u64::from_str_radix(major, 16).ok()?;
    let minor = u64::from_str_radix(minor, 16).ok()?;
    let inode = fields.next()?.parse().ok()?;
    let name = fields.next().unwrap_or("").trim_start().to_owned();
    let flag = |at: usize, c: u8| modes.get(at) == Some(&c);
    (low < high).then_some(Mapping {
        range: low..high,
        readable: flag(0, b'r'),
        writable: flag(1, b'w'),
        executable: flag(2, b'x'),
        shared: flag(3, b's'),
        offset,
        device: (major, minor),
        inode,
        name,
    })
}

/// User addresses end here without 5-level paging opt-in (Documentation/arch/x86/x86_64/mm.rst).
pub const USER_END: u64 = 0x7fff_ffff_f000;
/// Never closer to a mapping than this: stacks grow downwards and have a guard gap of 1 MiB.
const MARGIN: u64 = 2 << 20;
const LOWEST: u64 = 1 << 20;

/// Left free above the heap and below the main stack, which grow, where there is room elsewhere.
const HEAP_GROWTH: u64 = 512 << 20;
const STACK_GROWTH: u64 = 1 << 30;

fn with_growth(mapping: &Mapping) -> Range<u64> {
    let Range { start, end } = mapping.range;
    match mapping.name.as_str() {
        "[heap]" => start..end.saturating_add(HEAP_GROWTH),
        "[stack]" => start.saturating_sub(STACK_GROWTH)..end,
        _ => start..end,
    }
}

/// A free address for `len` bytes, as near to `wanted` as there is and such that everything in
/// `reach` stays within `limit` bytes of every byte of it. `taken` lists what was promised already.
pub fn find_gap(
    mappings: &[Mapping],
    taken: &[Range<u64>],
    len: u64,
    reach: &Range<u64>,
    limit: u64,
) -> Option<u64> {
    find_gap_outside(&[], mappings, taken, len, reach, limit)
}

/// The same, outside of `avoided` too if there is room.
pub fn find_gap_outside(
    avoided: &[Range<u64>],
    mappings: &[Mapping],
    taken: &[Range<u64>],
    len: u64,
    reach: &Range<u64>,
    limit: u64,
) -> Option<u64> {
    let gap = |room: &dyn Fn(&Mapping) -> Range<u64>, avoided: &[Range<u64>]| {
        let occupied = mappings.iter().map(room).chain(taken.iter().cloned());
        let occupied = occupied.chain(avoided.iter().cloned());
        gap_between(occupied.collect(), len, reach, limit)
    };
    gap(&with_growth, avoided)
        .or_else(|| gap(&with_growth, &[]))
        .or_else(|| gap(&|m| m.range.clone(), &[]))
}

fn gap_between(
    mut occupied: Vec<Range<u64>>,
    len: u64,
    reach: &Range<u64>,
    limit: u64,
) -> Option<u64> {
    occupied.retain(|r| r.start < USER_END); // [vsyscall] lies in the kernel's half
    occupied.sort_by_key(|r| r.start);
    let lowest = reach.end.saturating_sub(limit).max(LOWEST);
    let highest = reach.start.saturating_add(limit).min(USER_END);
    let middle = reach.start + (reach.end - reach.start) / 2;
    let mut best: Option<u64> = None;
    let mut offer = |free: Range<u64>| {
        let low = (free.start + MARGIN).max(lowest).next_multiple_of(4096);
        let high = free.end.saturating_sub(MARGIN).min(highest);
        if low + len > high {
            return;
        }
        let last = (high - len) & !4095;
        let at = if middle < low {
            low
        } else {
            middle.min(last) & !4095
        };
        if best.is_none_or(|b| at.abs_diff(middle) < b.abs_diff(middle)) {
            best = Some(at);
        }
    };
    let mut free_from = 0;
    for range in occupied {
        if range.start > free_from {
            offer(free_from..range.start);
        }
        free_from = free_from.max(range.end);
    }
    offer(free_from..USER_END + MARGIN);
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
55d0c0000000-55d0c0010000 r-xp 00000000 fe:00 1234                       /usr/sbin/nginx
7f0000000000-7f0000100000 rw-s 00001000 00:05 77                         /memfd:hopscope-code (deleted)
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
garbage
";

    #[test]
    fn lines_are_understood() {
        let maps = parse(TEXT);
        assert_eq!(maps.len(), 3);
        assert_eq!(maps[0].name, "/usr/sbin/nginx");
        assert!(maps[0].executable && !maps[0].writable && !maps[0].shared);
        assert_eq!(
            (maps[1].name.as_str(), maps[1].offset),
            ("/memfd:hopscope-code (deleted)", 0x1000)
        );
        assert_eq!(maps[0].device, (0xfe, 0));
        assert!(maps[1].shared);
    }

    #[test]
    fn a_gap_is_near_free_and_in_reach() {
        let maps = parse(TEXT);
        let reach = maps[0].range.clone();
        let at = find_gap(&maps, &[], 1 << 20, &reach, 1 << 31).unwrap();
        assert!(at.abs_diff(reach.start) < 1 << 23);
        assert!(
            maps.iter()
                .all(|m| at + (1 << 20) <= m.range.start || at >= m.range.end)
        );
        let taken = at..at + (1 << 20);
        let second = find_gap(
            &maps,
            std::slice::from_ref(&taken),
            1 << 20,
            &reach,
            1 << 31,
        )
        .unwrap();
        assert!(second.abs_diff(at) >= 1 << 20);
    }

    #[test]
    fn the_heap_and_the_stack_may_grow() {
        let maps = parse(
            "00400000-00440000 r-xp 00000000 fe:00 1234 /bin/static\n\
             10000000-10100000 rw-p 00000000 00:00 0 [heap]\n\
             7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n",
        );
        let (text, heap, stack) = (&maps[0].range, &maps[1].range, &maps[2].range);
        let above_heap = find_gap(&maps, &[], 256 << 20, text, 1 << 31).unwrap();
        assert!(above_heap >= heap.end + HEAP_GROWTH);
        let near_stack = find_gap(&maps, &[], 1 << 20, stack, 1 << 46).unwrap();
        assert!(near_stack + (1 << 20) <= stack.start - STACK_GROWTH || near_stack >= stack.end);
        // What is to be avoided is, but not at the price of the heap.
        let outside = |avoided: Range<u64>, len| {
            let avoided = std::slice::from_ref(&avoided);
            find_gap_outside(avoided, &maps, &[], len, text, 1 << 31)
        };
        assert!(outside(0..1 << 30, 1 << 20) >= Some(1 << 30));
        let near = outside(0..1 << 31, 256 << 20);
        assert_eq!(near, Some(above_heap));
        // Where there is no other place, the growth has to do with less.
        let near_heap = heap.end..heap.end + 1;
        assert!(find_gap(&maps, &[], 1 << 20, &near_heap, 64 << 20).is_some());
    }

    #[test]
    fn no_gap_in_reach_is_none() {
        let full = [Mapping {
            range: 0..USER_END,
            ..parse(TEXT)[0].clone()
        }];
        assert_eq!(find_gap(&full, &[], 4096, &(0x1000..0x2000), 1 << 31), None);
    }
}
