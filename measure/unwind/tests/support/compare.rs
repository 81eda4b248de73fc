//! What unwinders would read of the copies, against what they read of the originals.
use super::copied::{AT, Copied};
use super::copy::Copy;
use super::originals::{Originals, Seen};
use super::outside::{self, Outside};
use super::personality::{Action, Answer, ask};
use super::rows::{Cfa, Fde, Row, rows};
use super::{BIAS, SEGMENT};
use gimli::Pointer;
use std::path::Path;

impl Originals<'_, '_> {
    pub fn compare(mut self, path: &Path) -> Seen {
        let len = self.tables.len();
        let blob = std::mem::take(&mut self.tables).finish(AT).unwrap();
        assert_eq!(blob.len(), len);
        let copy = Copied::read(&blob);
        let section = outside::section(&blob);
        let outside = Outside::read(&section);
        let mut entries = 0;
        for function in std::mem::take(&mut self.functions) {
            for (n, made) in &function {
                let fde = &self.fdes[*n];
                let new = copy.find(made.copy.start, made.copy.end);
                assert_eq!(new.initial_address(), SEGMENT + made.copy.start);
                assert_eq!(new.end_address(), SEGMENT + made.copy.end);
                assert_eq!(new.is_signal_trampoline(), fde.is_signal_trampoline());
                let (old_routine, new_routine) = (fde.personality(), new.personality());
                assert_eq!(new_routine, old_routine.map(moved), "{path:?} {fde:?}");
                self.rows(fde, made, &copy, &new);
                outside.compare(&copy, &new);
                self.exceptions(fde, &function, made, &copy, &new);
                entries += 1 + self.apart(fde, &function, made, &copy);
            }
        }
        assert_eq!(copy.entries, entries);
        self.seen
    }

    fn rows(&mut self, fde: &Fde, made: &Copy, copy: &Copied, new: &Fde) {
        let before = rows(self.eh_frame, self.bases, fde, |_| 0);
        let pushed = |at: u64| made.pushed_at(at - SEGMENT);
        let after = rows(&copy.eh_frame, &copy.bases, new, pushed);
        assert_eq!(
            after.first().map(|r| r.start),
            Some(SEGMENT + made.copy.start)
        );
        let (mut b, mut a) = (0, 0);
        for (svma, range) in made.instructions() {
            b = row_at(&before, b, svma);
            for offset in range {
                // Rows of the new table begin wherever the number of pushed bytes changes.
                a = row_at(&after, a, SEGMENT + offset);
                let follows = match &after[a].cfa {
                    Cfa::Register(register, _) => *register == 7,
                    Cfa::Expression(code) => code.iter().any(|o| o.contains("Register(7)")),
                };
                if follows {
                    let whole_row = made.pushed_at(after[a].start - SEGMENT);
                    assert_eq!(whole_row, made.pushed_at(offset), "{svma:#x}");
                    self.seen.pushed += usize::from(whole_row > 0);
                }
                let same = (&after[a].cfa, &after[a].registers, after[a].args_size);
                let expected = (&before[b].cfa, &before[b].registers, before[b].args_size);
                assert_eq!(same, expected, "{svma:#x} {offset:#x}");
            }
        }
    }

    /// Code apart: as at the instructions that it stands before. How many entries it has.
    fn apart(
        &mut self,
        fde: &Fde,
        function: &[(usize, Copy)],
        made: &Copy,
        copy: &Copied,
    ) -> usize {
        let before = rows(self.eh_frame, self.bases, fde, |_| 0);
        let mut found = std::collections::BTreeSet::new();
        for apart in &made.apart {
            let new = copy.containing(apart.copy.start);
            found.insert(new.initial_address());
            let after = |pushed: i64| rows(&copy.eh_frame, &copy.bases, &new, move |_| pushed);
            let b = before.iter().rfind(|r| r.start <= apart.svma).unwrap();
            for offset in apart.copy.clone() {
                let known = apart.pushed.partition_point(|p| p.0 <= offset);
                let pushed = known.checked_sub(1).map_or(0, |n| apart.pushed[n].1.into());
                let after = after(pushed);
                let a = &after[row_at(&after, 0, SEGMENT + offset)];
                assert_eq!(
                    (&a.cfa, &a.registers),
                    (&b.cfa, &b.registers),
                    "{:#x}",
                    apart.svma
                );
            }
            self.seen.asides += 1;
            let routine = fde.personality();
            assert_eq!(new.personality(), routine.map(moved));
            let Some(new_table) = new.lsda() else {
                continue;
            };
            let table = fde.lsda().map(Pointer::pointer).unwrap();
            // The end of a piece is as its last byte.
            let svma = apart.svma.min(made.original.end - 1);
            let mut expected = ask(self.memory, table, fde.initial_address(), svma);
            let pad_of = |svma| function.iter().find_map(|(_, c)| c.pad(svma)).unwrap();
            if let Answer::Land { pad, actions } = &mut expected {
                *pad = SEGMENT + pad_of(*pad);
                self.seen.landing_asides += 1;
                move_types(actions);
            }
            for ip in [apart.copy.start, apart.copy.end - 1] {
                let begin = new.initial_address();
                let found = ask(&copy.memory, new_table.pointer(), begin, SEGMENT + ip);
                assert_eq!(found, expected, "{svma:#x}");
            }
        }
        found.len()
    }

    fn exceptions(
        &mut self,
        fde: &Fde,
        function: &[(usize, Copy)],
        made: &Copy,
        copy: &Copied,
        new: &Fde,
    ) {
        let lies_inside = |at: u64| {
            let base = self.bases.eh_frame.section.unwrap() + fde.offset() as u64;
            (base..base + 12 + fde.entry_len() as u64).contains(&at)
        };
        let table = fde.lsda().map(Pointer::pointer);
        let table = table.filter(|at| !lies_inside(*at) && fde.personality().is_some());
        assert_eq!(table.is_some(), new.lsda().is_some());
        let (Some(table), Some(new_table)) = (table, new.lsda()) else {
            return;
        };
        let head = copy.memory.at(new_table.pointer()).unwrap();
        self.seen.based += usize::from(head[0] != 0xff);
        let pad_of = |svma| function.iter().find_map(|(_, c)| c.pad(svma)).unwrap();
        for (svma, range) in made.instructions() {
            let mut expected = ask(self.memory, table, fde.initial_address(), svma);
            if let Answer::Land { pad, actions } = &mut expected {
                *pad = SEGMENT + pad_of(*pad);
                self.seen.landing += 1;
                for action in actions {
                    let types = match action {
                        Action::CleanUp => continue,
                        Action::Catch { address, .. } => vec![address],
                        Action::Filter(list) => {
                            self.seen.filters += 1;
                            list.iter_mut().map(|(_, address)| address).collect()
                        }
                    };
                    for address in types.into_iter().filter(|a| **a != 0) {
                        *address += BIAS;
                        self.seen.types += 1;
                    }
                }
            }
            for ip in [range.start, range.end - 1] {
                let begin = new.initial_address();
                let found = ask(&copy.memory, new_table.pointer(), begin, SEGMENT + ip);
                assert_eq!(found, expected, "{svma:#x}");
            }
        }
    }
}

fn move_types(actions: &mut [Action]) {
    for action in actions {
        let types: Vec<&mut u64> = match action {
            Action::CleanUp => continue,
            Action::Catch { address, .. } => vec![address],
            Action::Filter(list) => list.iter_mut().map(|(_, address)| address).collect(),
        };
        for address in types.into_iter().filter(|a| **a != 0) {
            *address += BIAS;
        }
    }
}

fn row_at(rows: &[Row], from: usize, at: u64) -> usize {
    let way = rows[from..].iter().position(|r| at < r.end);
    from + way.unwrap_or_else(|| panic!("no row for {at:#x}"))
}

fn moved(routine: Pointer) -> Pointer {
    match routine {
        Pointer::Direct(at) => Pointer::Direct(at + BIAS),
        Pointer::Indirect(at) => Pointer::Indirect(at + BIAS),
    }
}
