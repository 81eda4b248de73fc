//! Functions run as they are and as measured copies: the same inputs leave the same registers,
//! flags and memory. Bodies are generated from a seed; real ones come from the system's libraries.
mod body;
mod inlined;
mod instructions;
mod program;
mod random;

use crate::recording::{Recording, Report};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, scratch};
use program::Program;

/// Nothing may be lost, however late the recorder gets a processor.
const BUFFER: &str = "1G";

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc, Requirement::Fsgsbase];
    suite.case("execution::generated_bodies", gcc, generated);
    suite.case("execution::generated_inlined_parts", gcc, inlined_parts);
    let real = &[
        Requirement::Gcc,
        Requirement::Fsgsbase,
        Requirement::Openssl,
    ];
    suite.case("execution::library_functions", real, real_functions);
}

const INPUTS: u64 = 8;

fn generated() -> Result<()> {
    let (programs, bodies) = counts().pick((2, 300), (40, 1_000));
    for seed in 1..=programs {
        let source = body::source(seed, bodies);
        let path = scratch().join(format!("bodies-{seed}.s"));
        std::fs::write(&path, &source)?;
        let mut program = Program::start_bodies(&path)?;
        let report = program
            .same_when_measured(seed, INPUTS, "/^(body|helper)_/")
            .map_err(|e| with_body(e, &source))?;
        let (mut measured, mut entries) = (0, 0);
        for n in 0..bodies {
            let name = body::name(n);
            if let Some(reason) = report.refused.get(&name) {
                let reasons = ["inside the bytes the jump replaces", "too short"];
                let expected = reasons.iter().any(|known| reason.contains(known));
                ensure!(expected, "seed {seed}: {name} is refused: {reason}");
                continue;
            }
            let calls = report.entries(&name);
            ensure!(calls == INPUTS, "seed {seed}: {calls} entries of {name}");
            (measured, entries) = (measured + 1, entries + calls);
        }
        ensure!(
            measured * 10 >= bodies * 9,
            "seed {seed}: only {measured} of {bodies} bodies are measured"
        );
        println!("seed {seed}: {measured} of {bodies} bodies, {entries} calls of them");
    }
    Ok(())
}

/// Probes amid bodies, wherever the debugging information says.
fn inlined_parts() -> Result<()> {
    let (programs, bodies) = counts().pick((2, 300), (40, 1_000));
    for seed in 1..=programs {
        let source = inlined::with_places(&body::source(seed, bodies), seed);
        let path = scratch().join(format!("inlined-{seed}.s"));
        std::fs::write(&path, &source)?;
        let mut program = Program::start_bodies(&path)?;
        let report = program
            .same_when_measured(seed, INPUTS, "inlined:inl_*")
            .map_err(|e| with_body(e, &source))?;
        let timed = report.functions.iter();
        let timed =
            timed.filter(|(name, balance)| name.contains("[inlined") && balance["entries"] > 0);
        let timed = timed.count() as u64;
        ensure!(
            timed > bodies / 4,
            "seed {seed}: {timed} places were come to"
        );
        println!("seed {seed}: {timed} places");
    }
    Ok(())
}

/// The error, and the body that it names: whoever reads it need not generate it again.
fn with_body(error: anyhow::Error, source: &str) -> anyhow::Error {
    let said = error.to_string();
    let named = said.split(' ').find(|word| word.starts_with("body_"));
    let body = named.and_then(|name| {
        let from = source.find(&format!("\n{name}:\n"))?;
        let to = source[from..].find(".globl body_")?;
        Some(&source[from..from + to])
    });
    error.context(body.unwrap_or("no body is named").to_owned())
}

fn real_functions() -> Result<()> {
    // A round makes some 700,000 records.
    let (recordings, rounds) = counts().pick((1, 20), (30, 60));
    let mut program = Program::start_library()?;
    for seed in 1..=recordings {
        let report = program.same_when_measured(seed, rounds, "*")?;
        for function in ["strlen", "qsort", "crc32", "deflate", "EVP_DigestUpdate"] {
            let found = |name: &&String| name.trim_start_matches('_').starts_with(function);
            ensure!(
                report.functions.keys().any(|name| found(&name)),
                "{function} was not measured: {:?}",
                report.refused.get(function)
            );
        }
        println!("{} functions were called", report.functions.len());
    }
    Ok(())
}

impl Program {
    /// The same before, while and after all that matches `pattern` is measured.
    fn same_when_measured(&mut self, seed: u64, rounds: u64, pattern: &str) -> Result<Report> {
        let before = self.run(seed, rounds)?;
        let file = scratch().join("execution.hop");
        let recording = Recording::start_keeping(self.pid(), &[pattern], &file, BUFFER)?;
        let measured = self.run(seed, rounds)?;
        recording.stop()?;
        let after = self.run(seed, rounds)?;
        for ((bare, copy), again) in before.iter().zip(&measured).zip(&after) {
            ensure!(
                bare == copy,
                "seed {seed}: {bare} as it is, {copy} measured"
            );
            ensure!(
                bare == again,
                "seed {seed}: {bare} before, {again} afterwards"
            );
        }
        ensure!(before.len() == measured.len() && before.len() == after.len());
        let report = Report::read(&file)?;
        report.expect_whole()?;
        Ok(report)
    }
}
