//! `hopscope check`: what this machine allows, found out by trying wherever trying is harmless.
use serde::Serialize;
use std::io::{Read, Write};
use std::process::ExitCode;

mod bpf;
mod child;
mod cpu;
mod kernel;
mod limits;
mod memory;
mod network;
mod perf;
mod privilege;
mod splice;
mod system;

#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// Check one area in depth [default: all capabilities of the machine]
    #[arg(value_enum, value_name = "WHAT")]
    what: Option<What>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    /// Act as the child process that the checks run on
    #[arg(long, hide = true, value_name = "TRIAL")]
    as_child: Option<child::Trial>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// Kernel bugs that affect programs whose sockets `splice` accelerates
    Splice,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum Verdict {
    Ok {
        found: String,
    },
    Missing {
        found: String,
        remedy: String,
    },
    /// Could not be found out; never taken for ok.
    Unknown {
        found: String,
        remedy: String,
    },
}

#[derive(Debug, Serialize)]
struct Capability {
    name: &'static str,
    #[serde(flatten)]
    verdict: Verdict,
    /// Without it `record` does not work.
    needed_by_record: bool,
    purpose: &'static str,
    determined_by: &'static str,
}

impl Capability {
    fn new(
        name: &'static str,
        purpose: &'static str,
        determined_by: &'static str,
        verdict: Verdict,
    ) -> Capability {
        Capability {
            name,
            verdict,
            needed_by_record: false,
            purpose,
            determined_by,
        }
    }

    fn needed(mut self) -> Capability {
        self.needed_by_record = true;
        self
    }
}

impl Verdict {
    fn ok(found: impl Into<String>) -> Verdict {
        let found = found.into();
        Verdict::Ok { found }
    }

    fn missing(found: impl Into<String>, remedy: impl Into<String>) -> Verdict {
        let (found, remedy) = (found.into(), remedy.into());
        Verdict::Missing { found, remedy }
    }

    fn unknown(found: impl Into<String>, remedy: impl Into<String>) -> Verdict {
        let (found, remedy) = (found.into(), remedy.into());
        Verdict::Unknown { found, remedy }
    }
}

pub(crate) fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    if let Some(trial) = args.as_child {
        return be_child(trial);
    }
    if let Some(What::Splice) = args.what {
        return splice::run(args.json);
    }
    let groups: [fn() -> Vec<Capability>; 9] = [
        privilege::capabilities,
        memory::capabilities,
        cpu::capabilities,
        perf::capabilities,
        limits::capabilities,
        kernel::capabilities,
        bpf::capabilities,
        system::capabilities,
        network::capabilities,
    ];
    let capabilities: Vec<Capability> = groups.iter().flat_map(|group| group()).collect();
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

fn be_child(trial: child::Trial) -> anyhow::Result<ExitCode> {
    match trial {
        child::Trial::Wait => {
            std::io::stdin().read_to_end(&mut Vec::new())?;
        }
        child::Trial::Network => network::be_network_child()?,
        child::Trial::Lockdown => kernel::be_lockdown_child()?,
    }
    Ok(ExitCode::SUCCESS)
}
