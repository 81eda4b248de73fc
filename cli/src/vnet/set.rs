//! `hopscope vnet set`: other policies while packets flow.
use super::ask::{Asked, Which};
use clap::Args;
use hopscope_vnet::policy::Kind;
use hopscope_vnet::serve::Kicks;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

/// Changes the policies of a `vnet serve` that runs. Nothing stays unannounced: what the policy before held back is
/// let go. Its counts are kept under its name.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// When the guest is called for packets that it sent, as for vnet serve
    #[arg(long, value_name = "POLICY", group = "what")]
    tx_call_policy: Option<Kind>,
    /// The same for packets that it receives
    #[arg(long, value_name = "POLICY", group = "what")]
    rx_call_policy: Option<Kind>,
    /// When the guest is to kick: event-idx, adaptive or defer:K:US, where vnet serve offers the event index
    #[arg(long, value_name = "POLICY", group = "what")]
    kick_policy: Option<Kicks>,
    /// Let other policies think beside those at work, from now on, or no longer
    #[arg(long, value_name = "on|off", group = "what", value_parser = ["on", "off"])]
    shadows: Option<String>,
    /// This pair of queues only; the first is 0
    #[arg(long, value_name = "N")]
    queue: Option<u16>,
    /// The answer as a line of JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &SetArgs) -> anyhow::Result<ExitCode> {
    let mut request = json!({ "do": "set" });
    let mut add = |name: &str, value: Option<serde_json::Value>| {
        if let Some(value) = value {
            request[name] = value;
        }
    };
    add("pair", args.queue.map(Into::into));
    add(
        "tx_call_policy",
        args.tx_call_policy.map(|p| p.to_string().into()),
    );
    add(
        "rx_call_policy",
        args.rx_call_policy.map(|p| p.to_string().into()),
    );
    add(
        "kick_policy",
        args.kick_policy.map(|p| p.to_string().into()),
    );
    add(
        "shadows",
        args.shadows.as_ref().map(|word| (word == "on").into()),
    );
    let answer = Asked::open(&args.which)?.ask(&request)?;
    let mut out = std::io::stdout();
    if args.json {
        writeln!(out, "{answer}")?;
        return Ok(ExitCode::SUCCESS);
    }
    for queue in answer["queues"].as_array().into_iter().flatten() {
        let n = queue["queue"].as_u64().unwrap_or(0);
        let text = |name: &str| queue[name].as_str().unwrap_or("?").to_owned();
        writeln!(
            out,
            "{}: calls {}, kicks {}",
            super::stat::name(n / 2, ["rx", "tx"][usize::from(n % 2 == 1)]),
            text("call_policy"),
            text("kick_policy"),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
