//! One function after the other: whether it is asked for, and how it is measured.
use super::Plan;
use super::calls::ChosenCallees;
use super::in_callers::ByName;
use super::interposed::{Led, Method};
use super::item::{Frames, Item};
use super::judging::{FoundSlots, Home, judged};
use crate::counters::events;
use crate::instrument::body::inlined::Crossings;
use crate::instrument::body::unit::{Piece, Unit};
use crate::instrument::body::verdict;
use crate::instrument::body::{NoSlot, Refusal};
use crate::instrument::capture::Capture;
use crate::instrument::capture::parse::{Expr, Selection, Wanted};
use crate::instrument::resolve::{Policy, Subject, resolve};
use crate::live::asked::Asked;
use crate::locate::pattern::Pattern;
use crate::locate::{self, Function, Load};
use hopscope_event::{CapturePlace, FunctionId};
use std::sync::Arc;

/// What was asked for, of the modules that it names.
pub(super) struct Choice<'a> {
    selections: &'a [Selection],
    left_out: &'a [Pattern],
    policy: &'a Policy,
    method: Method,
    /// What is asked for by a slot is known by the slot's name, too: what an IFUNC was resolved to has no other.
    by_slots: bool,
}

#[derive(Default)]
pub(super) struct Chosen {
    pub(super) items: Vec<Item>,
    /// Asked for, whether measured or refused.
    pub(super) matched: usize,
    pub(super) excluded: usize,
    /// Not by the modules whose calls are asked for.
    pub(super) not_called: usize,
    /// Functions that were asked for what they call, and call nothing of that.
    pub(super) call_nothing: usize,
}

impl<'a> Choice<'a> {
    pub(super) fn new(
        selections: &'a [Selection],
        left_out: &'a [Pattern],
        policy: &'a Policy,
        method: Method,
    ) -> Choice<'a> {
        let names_callers = selections.iter().any(|s| s.callers.is_some());
        Choice {
            by_slots: method == Method::Got || names_callers,
            selections,
            left_out,
            policy,
            method,
        }
    }
}

impl Plan {
    /// Measured, refused, excluded, or not asked for at all. `slots` are looked for once they are needed.
    pub(super) fn choose<'s>(
        &mut self,
        choice: &Choice,
        slots: &impl Fn() -> &'s FoundSlots,
        (home, by_name): (&Home, &ByName),
        function: &Function,
        chosen: &mut Chosen,
    ) {
        let address = function.svma.wrapping_add(home.module.bias);
        let named = match choice.by_slots.then(slots) {
            Some(Ok(slots)) => slots.named(address, function),
            _ => None,
        };
        let function = named.as_ref().unwrap_or(function);
        let wanted = wanted(choice.selections, &home.path, function);
        let around = home.within.of(function);
        if self.follows_loads && wanted.is_some() {
            let all = choice.selections.iter().enumerate();
            let matching = all.filter(|(_, s)| s.of(&home.path, function).is_some());
            self.matched.extend(matching.map(|(n, _)| n));
        }
        // Who has chosen functions in it is measured, too.
        let Some(wanted) = wanted.or_else(|| around.map(|_| Vec::new())) else {
            return;
        };
        let left_out = &mut choice.left_out.iter();
        if left_out.any(|p| p.matches(&home.path, function)) {
            if self.left_out.insert((home.ix, function.svma)) {
                self.inlined.left_out += around.map_or(0, |a| a.places.len());
            }
            chosen.excluded += 1;
            return;
        }
        let callers = match around {
            None => callers(choice.selections, &home.path, function),
            Some(_) => Vec::new(),
        };
        if by_name.has(home.ix, function) {
            chosen.matched += 1;
            if around.is_none() {
                return;
            }
        }
        match judged(home, function, (choice.method, &callers), slots) {
            Ok(((unit, pieces), led)) => {
                let calls = around.and_then(|around| around.calls);
                let for_calls_alone = || {
                    let others = choice.selections.iter().filter(|s| s.calls.is_none());
                    let mut others = others.filter_map(|s| s.of(&home.path, function));
                    around.is_some_and(|a| a.places.is_empty()) && others.next().is_none()
                };
                if let Some(calls) = calls
                    && !ChosenCallees::are_made(calls, home.image, &unit, &pieces)
                    && for_calls_alone()
                {
                    chosen.call_nothing += 1;
                    return;
                }
                chosen.matched += 1;
                let item = self.measured((choice, &wanted), home, function, (&unit, &pieces), led);
                chosen.items.push(item);
            }
            Err(Refusal::NoSlot(NoSlot::Nobody)) if !callers.is_empty() => chosen.not_called += 1,
            Err(why) => {
                chosen.matched += 1;
                let (name, svma) = (&function.name, function.svma);
                if self.refuse(home.base, name, svma, why.to_string()) {
                    self.inlined.refused += around.map_or(0, |a| a.places.len());
                }
            }
        }
    }

    fn measured(
        &mut self,
        (choice, wanted): (&Choice, &[Wanted]),
        home: &Home,
        function: &Function,
        (unit, pieces): (&Unit, &[Piece]),
        led: Option<Led>,
    ) -> Item {
        let name = match &led {
            Some(led) => {
                self.refuse_callers(led, home.base, function);
                led.name(&function.name)
            }
            None => function.name.clone(),
        };
        let id = self.id(home.image, home.ix, function, name);
        let inlined = match home.within.of(function) {
            Some(around) => {
                let tables = (&**home.image, home.process.tables);
                self.timed_in_place((id, function), home.base, (unit, pieces), around, tables)
            }
            None => Crossings::default(),
        };
        Item {
            captures: self.taken_along(id, (choice.policy, wanted), home, (unit, pieces)),
            inlined,
            id,
            slots: led.map(|led| led.slots),
            image: home.image.clone(),
            ranges: unit.pieces.iter().map(|p| p.range.clone()).collect(),
            red_zone_at_entry: unit.red_zone_at_entry,
            lands: function.has_lsda,
            bias: home.module.bias,
            module: home.module.avma_range.clone(),
            load: Load::of(home.module, home.image),
            frames: self.frames(
                home.process.tables.and(home.asked),
                verdict::may_be_unwound(function, home.process),
                home.walked,
            ),
        }
    }

    fn taken_along(
        &mut self,
        id: FunctionId,
        (policy, wanted): (&Policy, &[Wanted]),
        home: &Home,
        (unit, pieces): (&Unit, &[Piece]),
    ) -> Vec<Capture> {
        let (counters, wanted) = self.counted(wanted);
        if wanted.is_empty() {
            return self.captured(id, (counters, Vec::new()));
        }
        let debug = self.debug(home.image, home.ix);
        let subject = Subject {
            unit,
            pieces,
            debug: debug.as_ref(),
        };
        let (mut captures, refused) = resolve(subject, &wanted, policy);
        self.debug.insert(home.ix, debug);
        captures.extend(counters);
        self.captured(id, (captures, refused))
    }

    /// Counters that are asked for, at both ends of calls, and what else is to be taken along.
    fn counted(&self, wanted: &[Wanted]) -> (Vec<Capture>, Vec<Wanted>) {
        let (mut counted, mut rest) = (Vec::new(), Vec::new());
        for one in wanted {
            let Expr::Counter(name) = &one.what else {
                rest.push(one.clone());
                continue;
            };
            let event = events::named(name).ok();
            let counter = self.counters.iter().find(|c| Some(c.event) == event);
            let both = [CapturePlace::Entry, CapturePlace::Return];
            let both = both.map(|at| counter.map(|counter| Capture::counted(counter, at)));
            let new = both.into_iter().flatten();
            let new = new.filter(|c| !counted.contains(c)).collect::<Vec<_>>();
            counted.extend(new);
        }
        (counted, rest)
    }

    /// Of a function; `asked`: where its module has tables and unwinders can be given those of copies.
    fn frames(&self, asked: Option<&Arc<[Asked]>>, must: bool, walked: bool) -> Option<Frames> {
        match asked {
            Some(asked) if must || walked || self.all_frames => Some(Frames {
                asked: asked.clone(),
                must,
                walked,
            }),
            None if self.all_frames => Some(Frames {
                asked: Arc::new([]),
                must: false,
                walked: false,
            }),
            _ => None,
        }
    }
}

/// What is to be captured of a function that some selection matches, each once.
fn wanted(
    selections: &[Selection],
    module: &str,
    function: &locate::Function,
) -> Option<Vec<Wanted>> {
    let matching = || selections.iter().filter_map(|s| s.of(module, function));
    matching().next()?;
    let mut wanted: Vec<Wanted> = Vec::new();
    for one in matching().flatten() {
        if !wanted.iter().any(|w| w.what == one.what) {
            wanted.push(one.clone());
        }
    }
    Some(wanted)
}

/// The modules whose calls of a function are measured; none where all are.
fn callers<'s>(
    selections: &'s [Selection],
    module: &str,
    function: &locate::Function,
) -> Vec<&'s Pattern> {
    let matching = selections
        .iter()
        .filter(|s| s.of(module, function).is_some());
    let callers: Option<Vec<_>> = matching.map(|s| s.callers.as_ref()).collect();
    callers.unwrap_or_default()
}
