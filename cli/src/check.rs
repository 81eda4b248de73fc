//! `hopscope check`: what this machine allows, found out by trying wherever trying is harmless.
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

mod cpu;

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Ok,
    Missing,
    /// Could not be found out; never taken for ok.
    Unknown,
}

#[derive(Debug, Serialize)]
pub(crate) struct Capability {
    name: &'static str,
    state: State,
    /// Without it `record` does not work.
    needed_by_record: bool,
    /// What was seen.
    found: String,
    purpose: &'static str,
    /// How to get it; empty when it is there.
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
    /// How this was found out.
    determined_by: &'static str,
}

pub(crate) fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let capabilities = cpu::capabilities();
    let mut out = std::io::stdout().lock();
    for capability in &capabilities {
        match args.json {
            true => write_json(&mut out, capability)?,
            false => write_text(&mut out, capability)?,
        }
    }
    let ready = capabilities
        .iter()
        .all(|c| !c.needed_by_record || c.state == State::Ok);
    Ok(ExitCode::from(if ready { 0 } else { 1 }))
}

fn write_json(out: &mut impl Write, capability: &Capability) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        schema: u32,
        #[serde(flatten)]
        capability: &'a Capability,
    }
    let line = Line {
        r#type: "capability",
        schema: 1,
        capability,
    };
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)?;
    Ok(())
}

fn write_text(out: &mut impl Write, capability: &Capability) -> anyhow::Result<()> {
    let word = match capability.state {
        State::Ok => "ok",
        State::Missing => "missing",
        State::Unknown => "unknown",
    };
    let needed = if capability.needed_by_record {
        "*"
    } else {
        " "
    };
    writeln!(
        out,
        "{word:<8}{needed}{:<20} {}",
        capability.name, capability.found
    )?;
    if capability.state != State::Ok {
        writeln!(out, "{:30}for: {}", "", capability.purpose)?;
        if !capability.remedy.is_empty() {
            writeln!(out, "{:30}get: {}", "", capability.remedy)?;
        }
    }
    Ok(())
}
