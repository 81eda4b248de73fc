//! The other tools of the same kind, where they are installed. None is ever installed from here.
pub(crate) mod frida;
pub(crate) mod uftrace;
pub(crate) mod uprobe;
pub(crate) mod wrap;
pub(crate) mod xray;

use crate::Settings;
use crate::error::Result;
use crate::not_measured::NotMeasured;
use crate::passes::{Pairs, pass};
use crate::program::{Compiler, Program, ProgramPlan, Target, Variant, build};
use crate::rows::Row;
use std::path::PathBuf;

/// What a peer needs to be measured.
pub(crate) struct Bench<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) compiler: &'a Compiler,
    pub(crate) plan: &'a ProgramPlan,
    /// Built without any tool.
    pub(crate) plain: &'a Program,
    pub(crate) repetitions: usize,
    pub(crate) milliseconds: u64,
}

/// Rows of one tool, or why there are none.
type Measured = std::result::Result<Vec<Row>, String>;

/// Every peer that is measured after hopscope, each in its own processes.
pub(crate) fn others(
    settings: &Settings,
    compiler: &Compiler,
    milliseconds: u64,
    rows: &mut Vec<Row>,
    not_measured: &mut Vec<NotMeasured>,
) {
    let plan = ProgramPlan::short();
    let mut missing =
        |what: &str, reason: String| not_measured.push(NotMeasured::new(what, reason));
    let plain = match build(&settings.build_dir, &plan, compiler, Variant::Plain) {
        Ok(plain) => plain,
        Err(error) => return missing("peers", error.to_string()),
    };
    let bench = Bench {
        settings,
        compiler,
        plan: &plan,
        plain: &plain,
        repetitions: if settings.quick { 3 } else { 7 },
        milliseconds,
    };
    type Peer = fn(&Bench<'_>) -> Measured;
    let peers: [(&str, Peer); 6] = [
        ("uftrace record, -pg -mfentry", uftrace::rebuilt),
        ("uftrace record -P", uftrace::dynamic),
        ("XRay, empty handler", xray::empty),
        ("XRay, flight data recorder", xray::recorder),
        ("uprobe and uretprobe (perf)", uprobe::perf),
        ("frida", frida::attach),
    ];
    for (what, measure) in peers {
        settings.say(what);
        match measure(&bench) {
            Ok(found) => rows.extend(found),
            Err(reason) => missing(what, reason),
        }
    }
}

/// A program on the search path.
pub(crate) fn installed(program: &str) -> std::result::Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| format!("{program} is not installed"))
}

impl Bench<'_> {
    /// A peer that is there from the start: its process and the bare one measured in turn.
    pub(crate) fn beside(&self, tool: &mut Target, phases: &[&str]) -> Result<Pairs> {
        let mut bare = Target::start(self.plain)?;
        let mut pairs = Pairs::default();
        let mut before = pass(&mut bare, phases, self.milliseconds)?;
        for _ in 0..self.repetitions {
            let measured = pass(tool, phases, self.milliseconds)?;
            let after = pass(&mut bare, phases, self.milliseconds)?;
            pairs.add(&before, &measured, &after);
            before = after;
        }
        Ok(pairs)
    }

    /// A folder for what the tool writes, empty.
    pub(crate) fn scratch(&self, name: &str) -> std::result::Result<PathBuf, String> {
        let dir = self.settings.build_dir.join("peers").join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)
            .map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
        Ok(dir)
    }
}
