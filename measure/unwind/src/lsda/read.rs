//! Reading, within bounds: everything is limited by the length of the function that the table is for.
use super::{CallSite, Lsda, Types};
use crate::Refused;
use crate::bytes::Cursor;
use crate::pointer::{self, Bytes};
use std::collections::BTreeSet;
use std::ops::Range;

/// `bytes` begin with the table; `function`: what its unwind entry covers.
pub fn read<'d>(
    bytes: Bytes<'d>,
    svma: u64,
    function: &Range<u64>,
    bias: u64,
) -> Result<Lsda<'d>, Refused> {
    let bad = |why| move || Refused::Lsda { svma, why };
    let mut cursor = Cursor::new(bytes.data, 0);
    let base = landing_pad_base(bytes, &mut cursor, svma)?.unwrap_or(function.start);
    let type_encoding = cursor.u8().ok_or_else(bad("it ends early"))?;
    let type_base = match type_encoding {
        pointer::OMIT => None,
        _ => {
            let offset = cursor.uleb128().and_then(|o| usize::try_from(o).ok());
            let base = offset.and_then(|o| cursor.at().checked_add(o));
            let base = base.filter(|b| *b <= bytes.data.len());
            Some(base.ok_or_else(bad("its types lie outside the file"))?)
        }
    };
    let (call_sites, actions_at) = call_sites(bytes, &mut cursor, svma, function, base)?;
    let most = most(function);
    let actions = Actions::walk(bytes.data, actions_at, &call_sites, most)
        .ok_or_else(bad("its actions lead out of it, or are too many"))?;
    let types = match type_base {
        Some(base) => Some(types(
            bytes,
            svma,
            type_encoding,
            base,
            &actions,
            most,
            bias,
        )?),
        None if actions.last_type > 0 || actions.lists.is_some() => {
            return Err(bad("its actions name types, and it has none")());
        }
        None => None,
    };
    Ok(Lsda {
        call_sites,
        actions: &bytes.data[actions_at..actions.end],
        types,
    })
}

/// Call sites, actions and types that a function of this length can have.
fn most(function: &Range<u64>) -> u64 {
    let len = function.end - function.start;
    len.saturating_mul(4).saturating_add(64)
}

fn landing_pad_base(bytes: Bytes, cursor: &mut Cursor, svma: u64) -> Result<Option<u64>, Refused> {
    let bad = |why| move || Refused::Lsda { svma, why };
    let encoding = cursor.u8().ok_or_else(bad("it ends early"))?;
    if encoding == pointer::OMIT {
        return Ok(None);
    }
    let what = "base of landing pads";
    pointer::check(encoding, what, bytes.absolute_is_final)?;
    if encoding & pointer::INDIRECT != 0 {
        return Err(Refused::PointerEncoding { what, encoding });
    }
    let base = pointer::address(encoding, bytes, cursor);
    base.map(Some).ok_or_else(bad("it ends early"))
}

/// With where the actions begin.
fn call_sites(
    bytes: Bytes,
    cursor: &mut Cursor,
    svma: u64,
    function: &Range<u64>,
    base: u64,
) -> Result<(Vec<CallSite>, usize), Refused> {
    let bad = |why| move || Refused::Lsda { svma, why };
    let encoding = cursor.u8().ok_or_else(bad("it ends early"))?;
    // Offsets, relative to nothing.
    if encoding & 0xf0 != 0 {
        let what = "call sites";
        return Err(Refused::PointerEncoding { what, encoding });
    }
    let length = cursor.uleb128().and_then(|l| usize::try_from(l).ok());
    let end = length.and_then(|l| cursor.at().checked_add(l));
    let end = end.filter(|e| *e <= bytes.data.len());
    let end = end.ok_or_else(bad("its call sites lie outside the file"))?;
    let mut inside = Cursor::new(&bytes.data[..end], cursor.at());
    let mut sites: Vec<CallSite> = Vec::new();
    let mut left = most(function);
    while inside.at() < end {
        let mut value = || pointer::value(encoding, &mut inside);
        let fields = (|| Some((value()?, value()?, value()?)))();
        let action = inside.uleb128();
        let ((start, len, pad), action) = fields
            .zip(action)
            .ok_or_else(bad("its call sites end early"))?;
        let start = function.start.checked_add(start);
        // Readers stop there. LLVM lets the tables of all parts of a function end at one place, so that those of others follow.
        if start.is_none_or(|start| start >= function.end) {
            break;
        }
        let range = start.and_then(|start| Some(start..start.checked_add(len)?));
        let last = sites.last().map_or(function.start, |s| s.range.end);
        let range = range
            .filter(|r| r.start >= last && r.end <= function.end)
            .ok_or_else(bad(
                "its call sites do not ascend, or lie outside the function",
            ))?;
        left = left
            .checked_sub(1)
            .ok_or_else(bad("it has too many call sites"))?;
        sites.push(CallSite {
            range,
            pad: (pad != 0).then(|| base.wrapping_add(pad)),
            action,
        });
    }
    Ok((sites, end))
}

/// What the chains of actions name.
struct Actions {
    /// Behind the last record.
    end: usize,
    last_type: u64,
    /// Offsets of lists behind the types' base.
    lists: Option<BTreeSet<usize>>,
}

impl Actions {
    /// Each record: a type's number, zero for a clean-up, or less for a list; then the way from there to the next, or zero.
    fn walk(data: &[u8], at: usize, sites: &[CallSite], most: u64) -> Option<Actions> {
        let mut actions = Actions {
            end: at,
            last_type: 0,
            lists: None,
        };
        let mut seen = BTreeSet::new();
        for site in sites.iter().filter(|s| s.action > 0) {
            let mut next = at.checked_add(usize::try_from(site.action - 1).ok()?)?;
            while seen.insert(next) {
                if seen.len() as u64 > most {
                    return None;
                }
                let mut cursor = Cursor::new(data, next);
                let filter = cursor.sleb128()?;
                let from = cursor.at();
                let displacement = cursor.sleb128()?;
                actions.end = actions.end.max(cursor.at());
                match filter {
                    0.. => actions.last_type = actions.last_type.max(filter as u64),
                    _ => {
                        // -1 is the list at the base itself.
                        let list = usize::try_from(filter.checked_add(1)?.checked_neg()?).ok()?;
                        actions.lists.get_or_insert_default().insert(list);
                    }
                }
                if displacement == 0 {
                    break;
                }
                next = from.checked_add_signed(isize::try_from(displacement).ok()?)?;
                if next < at {
                    return None;
                }
            }
        }
        Some(actions)
    }
}

fn types<'d>(
    bytes: Bytes<'d>,
    svma: u64,
    encoding: u8,
    base: usize,
    actions: &Actions,
    most: u64,
    bias: u64,
) -> Result<Types<'d>, Refused> {
    let bad = |why| move || Refused::Lsda { svma, why };
    let mut last = actions.last_type;
    let mut end = base;
    let mut left = most;
    for list in actions.lists.iter().flatten() {
        let begin = base.checked_add(*list);
        let mut cursor = Cursor::new(bytes.data, begin.ok_or_else(bad("a list lies outside"))?);
        loop {
            left = left
                .checked_sub(1)
                .ok_or_else(bad("its lists are too long"))?;
            let number = cursor.uleb128().ok_or_else(bad("a list ends early"))?;
            end = end.max(cursor.at());
            last = last.max(number);
            if number == 0 {
                break;
            }
        }
    }
    let mut types = Types {
        indirect: encoding & pointer::INDIRECT != 0,
        values: Vec::new(),
        filters: &bytes.data[base..end],
    };
    // Without any, their encoding matters to nobody.
    if last == 0 {
        return Ok(types);
    }
    let what = "type of an exception";
    pointer::check(encoding, what, bytes.absolute_is_final)?;
    let size = pointer::size(encoding).ok_or(Refused::PointerEncoding { what, encoding })?;
    let outside = "its types lie outside of it, or are too many";
    if last > most {
        return Err(bad(outside)());
    }
    for number in 1..=last {
        let at = (base as u64).checked_sub(number * size);
        let at = at.filter(|at| *at >= actions.end as u64);
        let mut cursor = Cursor::new(bytes.data, at.ok_or_else(bad(outside))? as usize);
        let value = pointer::address(encoding, bytes, &mut cursor).ok_or_else(bad(outside))?;
        types.values.push(match value {
            0 => 0,
            svma => svma.wrapping_add(bias),
        });
    }
    Ok(types)
}

#[cfg(test)]
mod tests;
