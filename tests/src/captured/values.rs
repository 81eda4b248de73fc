//! What a recording holds of each call, and whether that is right.
use anyhow::{Context, Result, bail, ensure};
use hopscope_event::{CapturePlace, Content, FunctionId, RecordKind};
use hopscope_trace::TraceReader;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The handler's calls have numbers from here on.
const IN_HANDLER: u64 = 1 << 40;

/// A call that was seen whole, and its values by name and element.
#[derive(Debug, Default, Clone)]
pub(super) struct Call {
    values: BTreeMap<(String, u16), Content>,
}

/// By function.
pub(super) struct Calls(BTreeMap<String, Vec<Call>>);

struct Open {
    function: FunctionId,
    rsp: u32,
    call: Call,
}

impl Calls {
    /// By the order of the records alone, as docs/trace-format.md says.
    pub(super) fn read(file: &Path) -> Result<Calls> {
        let reader = TraceReader::open(file)?;
        let tables = reader.tables();
        let captures = tables.captures.iter();
        let names: HashMap<_, _> = captures
            .map(|c| ((c.function, c.capture), c.name.clone()))
            .collect();
        let functions: HashMap<_, _> = tables.functions.iter().map(|f| (f.id, &f.name)).collect();
        let mut calls: BTreeMap<String, Vec<Call>> = BTreeMap::new();
        let mut threads: HashMap<_, (Vec<Open>, Call, bool)> = HashMap::new();
        for batch in reader.batches() {
            let batch = batch?;
            let (open, returned, just_entered) = threads.entry(batch.thread).or_default();
            for record in &batch.records {
                let function = record.function();
                if let Some(value) = record.value() {
                    let name = names.get(&(function, value.capture));
                    let name = name.context("a value without a row in the table")?;
                    let key = (name.clone(), value.element);
                    let call = match value.at() {
                        Some(CapturePlace::Return) => &mut *returned,
                        at => {
                            let own = |o: &&mut Open| o.function == function;
                            let entered = *just_entered || at != Some(CapturePlace::Entry);
                            ensure!(entered, "{key:?} does not follow an entry");
                            // Calls begun before the recording are not told.
                            match open.iter_mut().rfind(own) {
                                Some(open) => &mut open.call,
                                None => continue,
                            }
                        }
                    };
                    let twice = call.values.insert(key.clone(), value.content);
                    ensure!(twice.is_none(), "{key:?} twice in a call");
                    continue;
                }
                *just_entered = record.kind() == Some(RecordKind::Entry);
                match record.kind() {
                    Some(RecordKind::Entry) => {
                        ensure!(returned.values.is_empty(), "a return without its exit");
                        open.push(Open {
                            function,
                            rsp: record.rsp_lo32(),
                            call: Call::default(),
                        });
                    }
                    Some(RecordKind::Exit) => {
                        let late = std::mem::take(returned);
                        let Some(mut ended) = open.pop() else {
                            continue;
                        };
                        let same = ended.function == function && ended.rsp == record.rsp_lo32();
                        ensure!(same, "another call ends than began last");
                        ended.call.values.extend(late.values);
                        let name = functions.get(&function).context("its name")?;
                        calls.entry((*name).clone()).or_default().push(ended.call);
                    }
                    kind => bail!("{kind:?} is not expected here"),
                }
            }
        }
        Ok(Calls(calls))
    }

    fn of(&self, function: &str) -> &[Call] {
        self.0.get(function).map_or(&[], Vec::as_slice)
    }
}

impl Call {
    fn get(&self, name: &str, element: u16) -> Option<u64> {
        match self.values.get(&(name.to_owned(), element)) {
            Some(Content::Value(value)) => Some(*value),
            _ => None,
        }
    }

    /// Exactly these, with their values.
    fn expect(&self, expected: &[(&str, u16, Content)]) -> Result<()> {
        for (name, element, content) in expected {
            let got = self.values.get(&((*name).to_owned(), *element));
            ensure!(
                got == Some(content),
                "{name} [{element}] is {got:?}, not {content:?}: {self:?}"
            );
        }
        let more = self.values.len() - expected.len();
        ensure!(more == 0, "{more} values too many: {self:?}");
        Ok(())
    }
}

fn value(value: i64) -> Content {
    Content::Value(value as u64)
}

/// As `fill` and `call` of the program have them.
fn expect_take(call: &Call) -> Result<u64> {
    let id = call.get("id", 0).context("a call without its id")?;
    let signed = id as i64;
    let n = id % 33;
    let when = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let seq = |i: u64| value(i64::from((id * 64 + i) as u32));
    let mut expected = vec![
        ("id", 0, value(signed)),
        ("frame->n", 0, value(n as i64)),
        ("queue", 0, value(i64::from(-(signed as i32)))),
        ("small", 0, value(i64::from(id as u8))),
        ("five", 0, value(i64::from((-signed) as i16))),
        ("six", 0, value(3 * signed)),
        ("frame->when", 0, Content::Value(when)),
        // The lowest byte of `when`.
        ("i8(frame+8)", 0, value(i64::from(when as i8))),
        ("frame->next->port", 0, value(-((id % 1000) as i64))),
        ("return", 0, value(-signed)),
    ];
    // Elements behind the last are what an earlier call left there.
    let third = call.get("frame->packets[3].seq", 0);
    let third = third.context("no element 3")?;
    expected.push((
        "frame->packets[3].seq",
        0,
        if n > 3 { seq(3) } else { Content::Value(third) },
    ));
    for i in 0..n {
        expected.push(("frame->packets[].seq", i as u16, seq(i)));
    }
    for i in 0..2 {
        let there = call
            .get("frame->first[].seq", i)
            .context("an element is absent")?;
        let known = u64::from(i) < n;
        let content = if known {
            seq(u64::from(i))
        } else {
            Content::Value(there)
        };
        expected.push(("frame->first[].seq", i, content));
    }
    call.expect(&expected)?;
    Ok(id)
}

fn expect_look(call: &Call) -> Result<u64> {
    let id = call.get("id", 0).context("a call without its id")?;
    let port = -((id % 1000) as i64);
    let mut expected = vec![
        ("id", 0, value(id as i64)),
        ("return", 0, value(if id % 2 == 1 { -1 } else { port })),
    ];
    // Where the function's own load is captured, the way without it has none.
    if id.is_multiple_of(2) || call.get("frame->port", 0).is_some() {
        expected.push(("frame->port", 0, value(port)));
    }
    call.expect(&expected)?;
    Ok(id)
}

/// Every value of every call that was seen; gives the numbers of the calls of each function.
pub(super) fn expect_right(calls: &Calls) -> Result<[Vec<u64>; 2]> {
    let take = calls.of("take").iter().map(expect_take);
    let look = calls.of("look").iter().map(expect_look);
    Ok([take.collect::<Result<_>>()?, look.collect::<Result<_>>()?])
}

/// That there is each of the program's own calls, once; gives the number of the handler's.
pub(super) fn expect_calls(calls: &Calls, own: u64) -> Result<u64> {
    let mut handled = 0;
    for mut ids in expect_right(calls)? {
        ids.sort_unstable();
        let (mine, of_handler): (Vec<u64>, Vec<u64>) = ids.iter().partition(|id| **id < IN_HANDLER);
        ensure!(mine.len() as u64 == own, "{} calls of {own}", mine.len());
        ensure!(mine.iter().zip(0..).all(|(id, n)| *id == n), "a call twice");
        handled = of_handler.len() as u64;
    }
    Ok(handled)
}

/// Gives how many values could not be read.
pub(super) fn expect_wild(calls: &Calls, made: u64) -> Result<u64> {
    let wild = calls.of("wild");
    ensure!(wild.len() as u64 == made, "{} calls of {made}", wild.len());
    let mut unreadable = 0;
    for call in wild {
        let id = call.get("id", 0).context("a call without its id")?;
        let whereto = call.get("where", 0).context("a call without its pointer")?;
        let first = match id % 6 {
            4 => Content::Value(0x1234_5678),
            _ => Content::Unreadable,
        };
        call.expect(&[
            ("id", 0, Content::Value(id)),
            ("where", 0, Content::Value(whereto)),
            ("u32(arg1)", 0, first),
            // Behind the end of the last page, or behind nothing at all.
            ("u8(u64(arg1+8))", 0, Content::Unreadable),
            ("u32(arg1+0)[]", 0, first),
            ("u32(arg1+0)[]", 1, Content::Unreadable),
        ])?;
        unreadable += if id % 6 == 4 { 2 } else { 4 };
    }
    Ok(unreadable)
}

/// Gives how many arrays were cut. The first item is 0, so there are none of the last capture.
pub(super) fn expect_many(calls: &Calls, made: u64) -> Result<u64> {
    let many = calls.of("many");
    ensure!(many.len() as u64 == made, "{} calls of {made}", many.len());
    let mut left_out = 0;
    for call in many {
        let n = call.get("n", 0).context("a call without its number")? as i64;
        let mut expected = vec![("n", 0, value(n))];
        for i in 0..n.clamp(0, 256) {
            expected.push(("be32(arg1)[]", i as u16, value(7 * i)));
        }
        if n > 256 {
            let elements = n as u64;
            expected.push(("be32(arg1)[]", 256, Content::LeftOut { elements }));
            left_out += 1;
        }
        call.expect(&expected)?;
    }
    Ok(left_out)
}
