//! Runs of a recording: passes of the data path, and what one begins with.
use crate::error::{Error, Result, refuse};
use crate::packet_id::{batch_capture, is_packet_number, values};
use crate::selection::Selection;
use hopscope_analyze::{Index, Root, RootChoice, RootError, RootSearch, Run, RunOptions, Runs};
use hopscope_event::{CaptureEntry, FunctionEntry, FunctionId};
use hopscope_trace::Tables;

/// Candidates that an error names.
const NAMED_MAX: usize = 8;

/// Where runs come from, and which.
pub struct RunSource<'a> {
    pub selection: &'a Selection,
    /// `FUNCTION`, `loop`, `loop:FUNCTION`; `None`: to be suggested.
    pub root: Option<&'a str>,
}

impl Selection {
    pub fn runs<'a>(&'a self, root: Option<&'a str>) -> RunSource<'a> {
        RunSource {
            selection: self,
            root,
        }
    }
}

impl RunSource<'_> {
    /// Gives each run to `take`, in the order of their ends; the builder then knows the counts.
    ///
    /// # Errors
    /// A root that is not in the recording or never ran, a recording without records of calls, and
    /// what `take` says.
    pub fn each(&self, mut take: impl FnMut(Run, &mut Runs) -> Result<()>) -> Result<Runs> {
        let tables = self.selection.tables();
        let options = RunOptions {
            root: self.root()?,
            window: self.selection.window,
            probe_cost: tables.meta.probe_cost,
        };
        let mut runs = Runs::new(Index::new(&tables.functions, &tables.threads), options);
        runs.off_cpu(self.selection.off_cpu()?);
        for next in self.selection.batches() {
            runs.feed(&next?.batch());
            while let Some(run) = runs.ready() {
                take(run, &mut runs)?;
            }
        }
        runs.finish();
        while let Some(run) = runs.ready() {
            take(run, &mut runs)?;
        }
        self.ran(&runs)?;
        Ok(runs)
    }

    fn root(&self) -> Result<Root> {
        let tables = self.selection.tables();
        if self
            .selection
            .reader()
            .heads()
            .all(|head| head.records == 0)
        {
            refuse!("{}", no_records(tables));
        }
        let named = |choice| Root {
            choice,
            suggested_because: None,
        };
        if let (None, Some(root)) = (self.root, kept(tables)) {
            return Ok(root);
        }
        match self
            .root
            .map(|text| text.split_once(':').unwrap_or((text, "")))
        {
            None | Some(("loop", "")) => self.search(),
            Some(("loop", head)) => {
                function(tables, head).map(|f| named(RootChoice::PollingLoop(f)))
            }
            // Names of C++ functions have colons of their own.
            Some(_) => function(tables, self.root.unwrap_or_default())
                .map(|f| named(RootChoice::Function(f))),
        }
    }

    fn search(&self) -> Result<Root> {
        let tables = self.selection.tables();
        let index = Index::new(&tables.functions, &tables.threads);
        let mut search =
            RootSearch::new(index, self.selection.window).packets_in(packets_in(&tables.captures));
        for next in self.selection.batches() {
            if !search.feed(&next?.batch()) {
                break;
            }
        }
        let found = match self.root {
            None => search.suggest(),
            Some(_) => search.suggest_loop(),
        };
        found.map_err(|error| match error {
            RootError::NoCalls => Error::Refused(
                "no call was recorded in the part that is looked at, so there is no run; \
                 widen --from and --to, or record longer"
                    .to_owned(),
            ),
            RootError::Ambiguous(_) => {
                let names = names(tables, error.candidates());
                Error::Refused(format!(
                    "{error}: say what a run begins with: --root loop:{names}"
                ))
            }
        })
    }

    fn ran(&self, runs: &Runs) -> Result<()> {
        let counts = runs.counts();
        if counts.runs > 0 {
            return Ok(());
        }
        let tables = self.selection.tables();
        let root = runs.root().choice;
        let name = names(tables, &[root.function()]);
        if counts.outside_window > 0 {
            let n = counts.outside_window;
            refuse!(
                "all {n} runs of {name} began outside the selected time; widen --from and --to"
            );
        }
        if counts.idle_passes > 0 {
            let n = counts.idle_passes;
            refuse!(
                "all {n} passes of the loop that begins with {name} did nothing but poll: no other \
                 measured function ran in them; record more functions, or take its calls \
                 themselves: --root {name}"
            );
        }
        refuse!(
            "{name} was measured and never ran: no run in {} calls that were recorded; \
             choose another --root, or let hopscope choose by leaving it out",
            counts.calls_outside
        )
    }
}

/// Functions that captured packets' counts; else those that captured their numbers.
fn packets_in(captures: &[CaptureEntry]) -> Vec<FunctionId> {
    if let Some((function, _)) = batch_capture(captures) {
        return vec![function];
    }
    let numbers = values(captures).filter(|c| is_packet_number(c));
    numbers.map(|c| c.function).collect()
}

/// What the runs begin with that alone were kept.
fn kept(tables: &Tables) -> Option<Root> {
    let thin = tables.thin.as_ref()?;
    let [root] = thin.roots[..] else {
        return None;
    };
    Some(Root {
        choice: RootChoice::Function(root),
        suggested_because: Some("only runs of it were kept (--every)".to_owned()),
    })
}

fn no_records(tables: &Tables) -> String {
    let next = "record a process first: hopscope record -p PID -f 'FUNCTIONS'";
    if tables.streams.is_empty() {
        format!("the recording holds no record of a call, so there are no runs; {next}")
    } else {
        format!(
            "the recording holds packets and no record of a call, so there are no runs; \
             give this file with --packets to the report of a process's recording ({next})"
        )
    }
}

/// The function of this name, or `MODULE!NAME` with the file name of the module.
pub(crate) fn function(tables: &Tables, text: &str) -> Result<FunctionId> {
    let is_it = |f: &&FunctionEntry| f.name == text || qualified(tables, f) == text;
    let found: Vec<_> = tables.functions.iter().filter(is_it).collect();
    match found[..] {
        [one] => Ok(one.id),
        [] => {
            if tables.refusals.iter().any(|r| r.name == text) {
                refuse!("{text} was requested but not measured; hopscope report lists the reason");
            }
            let ids: Vec<_> = tables.functions.iter().map(|f| f.id).collect();
            refuse!(
                "no function {text} in the recording; there are {}",
                names(tables, &ids)
            )
        }
        _ => {
            let ids: Vec<_> = found.iter().map(|f| f.id).collect();
            refuse!("{text} is more than one function: {}", names(tables, &ids))
        }
    }
}

fn qualified(tables: &Tables, f: &FunctionEntry) -> String {
    let module = tables.modules.iter().find(|m| m.ix == f.module);
    let file = module.and_then(|m| m.path.rsplit('/').next());
    format!("{}!{}", file.unwrap_or_default(), f.name)
}

fn names(tables: &Tables, ids: &[FunctionId]) -> String {
    let name = |id: &FunctionId| match tables.functions.iter().find(|f| f.id == *id) {
        Some(f) => qualified(tables, f),
        None => format!("function #{}", id.0),
    };
    let mut names: Vec<_> = ids.iter().take(NAMED_MAX).map(name).collect();
    if ids.len() > NAMED_MAX {
        names.push(format!("and {} more", ids.len() - NAMED_MAX));
    }
    names.join(", ")
}
