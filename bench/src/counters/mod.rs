//! `bench counters`: what it takes to read one counter of the own thread, as probes do, through PAPI, and by read(2). A
//! program in C reads in all ways in turn, on one processor, in rounds that begin with another way each.
mod report;

use crate::Settings;
use crate::error::{Error, Result};
use crate::not_measured::NotMeasured;
use crate::program::{self, Compiler};
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use report::{Figures, Window};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("read_counter.c");

/// A way of reading a counter; without an event it is a control.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Way {
    way: String,
    event: Option<String>,
}

/// The first thing that the program prints of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Examined {
    #[serde(flatten)]
    way: Way,
    /// Over work that counts `at_least` as many.
    grew: Option<u64>,
    at_least: Option<u64>,
    missing: Option<String>,
}

pub fn run(settings: &Settings, mut output: Output<'_>) -> Result<bool> {
    let dir = settings.build_dir.join("counters");
    fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
    let (program, without_papi) = build(&dir, &Compiler::of_the_system())?;
    let rounds = settings.pick(2, 9, 31);
    let ms = settings.pick(1, 2, 5);
    settings.say(&format!("{rounds} rounds of windows of {ms} ms"));
    let mut command = Command::new(&program);
    let text = program::run(command.args([rounds.to_string(), ms.to_string()]))?;
    let mut figures = Figures::default();
    for line in text.lines() {
        let no_summary = |_| Error::no_summary("read_counter", line);
        let printed: Value = serde_json::from_str(line).map_err(no_summary)?;
        if printed.get("round").is_some() {
            output.sample(printed.clone())?;
            let window: Window = serde_json::from_value(printed).map_err(no_summary)?;
            figures.windows.push(window);
        } else {
            let examined = serde_json::from_value(printed).map_err(no_summary)?;
            figures.add(examined, without_papi.as_deref());
        }
    }
    Ok(output.summary(&Host::look(None), figures.summary())?)
}

/// Where it cannot be built with libpapi, it is built without, and the reason is with it.
fn build(dir: &Path, compiler: &Compiler) -> Result<(PathBuf, Option<String>)> {
    let (source, program) = (dir.join("read_counter.c"), dir.join("read_counter"));
    fs::write(&source, SOURCE).map_err(Error::file("write", &source))?;
    let compiled = |more: &[&str]| {
        let mut command = Command::new(compiler);
        command.args(["-O2", "-std=gnu11", "-o"]).arg(&program);
        program::run(command.arg(&source).args(more))
    };
    let without = match compiled(&["-DWITH_PAPI", "-lpapi"]) {
        Ok(_) => None,
        Err(error) => {
            compiled(&[])?;
            Some(format!(
                "no program with libpapi can be built (Debian: libpapi-dev): {error}"
            ))
        }
    };
    Ok((program, without))
}

impl Figures {
    fn add(&mut self, examined: Examined, without_papi: Option<&str>) {
        let Some(missing) = &examined.missing else {
            self.examined.push(examined);
            return;
        };
        let reason = match without_papi {
            Some(reason) if examined.way.way == "papi" => reason,
            _ => missing,
        };
        let missing = NotMeasured::new(report::name(&examined.way), reason);
        self.not_measured.push(missing);
    }
}
