//! `hopscope vnet set`: other policies while packets flow.
use super::which::Which;
use clap::Args;
use hopscope_vnet::policy::PolicyKind;
use hopscope_vnet::serve::Kicks;
use hopscope_vnet::stat::queue_name;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;

/// Changes the policies of a running `vnet serve`. Notifications that the old policy delayed are sent at once. Its
/// counters are kept under its name.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true)))]
pub struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// When to interrupt the guest for transmitted packets, as in vnet serve
    #[arg(long, value_name = "POLICY", group = "what")]
    tx_call_policy: Option<PolicyKind>,
    /// When to interrupt the guest for received packets, of the same policies
    #[arg(long, value_name = "POLICY", group = "what")]
    rx_call_policy: Option<PolicyKind>,
    /// When the guest kicks: event-idx, adaptive or defer:K:US (needs the event index)
    #[arg(long, value_name = "POLICY", group = "what")]
    kick_policy: Option<Kicks>,
    /// Turn the shadow mode of other policies on or off
    #[arg(long, value_name = "on|off", group = "what", value_parser = ["on", "off"])]
    shadows: Option<String>,
    /// Change only this queue pair; the first is 0
    #[arg(long, value_name = "N")]
    queue: Option<u16>,
    /// Print the response as one JSON object
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
    let answer = args.which.open()?.ask(&request)?;
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
            queue_name(n / 2, ["rx", "tx"][usize::from(n % 2 == 1)]),
            text("call_policy"),
            text("kick_policy"),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
