//! `hopscope check`: what this machine allows, found out by trying wherever trying is harmless.
use hopscope_check::{Capability, Trial, Verdict};
use serde::Serialize;
use std::io::Write;
use std::process::ExitCode;

mod splice;

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// Check one area in depth [default: all capabilities of the machine]
    #[arg(value_enum, value_name = "WHAT")]
    what: Option<What>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Act as the child process that the checks run on
    #[arg(long, hide = true, value_name = "TRIAL", value_parser = as_child)]
    as_child: Option<Trial>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// Kernel bugs that affect programs whose sockets `splice` accelerates
    Splice,
}

pub(crate) fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    if let Some(trial) = args.as_child {
        hopscope_check::be_child(trial)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(What::Splice) = args.what {
        return splice::run(args.json);
    }
    let capabilities = hopscope_check::capabilities();
    let mut out = std::io::stdout().lock();
    for capability in &capabilities {
        if args.json {
            write_json(&mut out, capability)?
        } else {
            write_text(&mut out, capability)?
        }
    }
    let lacking: Vec<&str> = capabilities
        .iter()
        .filter(|c| c.needed_by_record && !matches!(c.verdict, Verdict::Ok { .. }))
        .map(|c| c.name)
        .collect();
    if !args.json {
        if lacking.is_empty() {
            writeln!(out, "\nall requirements of `record` (*) are met")?
        } else {
            writeln!(out, "\n`record` needs (*): {}", lacking.join(", "))?
        }
    }
    Ok(ExitCode::from(u8::from(!lacking.is_empty())))
}

fn as_child(text: &str) -> Result<Trial, String> {
    let trial = Trial::ALL.into_iter().find(|trial| trial.name() == text);
    trial.ok_or_else(|| "no such trial".into())
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
    let (word, found, remedy) = match &capability.verdict {
        Verdict::Ok { found } => ("ok", found, None),
        Verdict::Missing { found, remedy } => ("missing", found, Some(remedy)),
        Verdict::Unknown { found, remedy } => ("unknown", found, Some(remedy)),
    };
    let mark = if capability.needed_by_record {
        '*'
    } else {
        ' '
    };
    let name = capability.name;
    writeln!(out, "{word:<7} {mark} {name:<18} {found}")?;
    if let Some(remedy) = remedy {
        writeln!(out, "{:29}for: {}", "", capability.purpose)?;
        writeln!(out, "{:29}get: {remedy}", "")?;
    }
    Ok(())
}
