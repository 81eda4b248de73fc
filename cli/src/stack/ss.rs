//! `hopscope stack ss`: connections of a stack that runs.
use super::which::Which;
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;

/// Shows the connections of a running `stack serve` in the manner of `ss -tian`.
#[derive(Args)]
pub struct SsArgs {
    #[command(flatten)]
    which: Which,
    /// Connections to show, at most, of each engine
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &SsArgs) -> anyhow::Result<ExitCode> {
    let answer = args
        .which
        .open()?
        .ask_for_rows(args.limit, &json!({ "do": "ss", "limit": args.limit }))?;
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{answer}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let engines = answer["engines"].as_array().map_or(&[][..], Vec::as_slice);
    writeln!(
        out,
        "{:<11} {:>7} {:>8} {:>27} {:>27}",
        "State", "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port"
    )?;
    for engine in engines {
        let rows = engine["connections"].as_array();
        let rows = rows.map_or(&[][..], Vec::as_slice);
        for row in rows {
            write(&mut out, row)?;
        }
        let total = engine["total"].as_u64().unwrap_or(0);
        if total > rows.len() as u64 {
            let left = total - rows.len() as u64;
            crate::status::say!("{left} more: give --limit {total}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(out: &mut impl Write, row: &Value) -> io::Result<()> {
    let text = |name: &str| row[name].as_str().unwrap_or("*").to_owned();
    writeln!(
        out,
        "{:<11} {:>7} {:>8} {:>27} {:>27}",
        text("state"),
        row["recv_q"].as_u64().unwrap_or(0),
        row["send_q"].as_u64().unwrap_or(0),
        text("local"),
        text("peer")
    )?;
    if row["info"].is_object() {
        writeln!(out, "\t {}", info(&row["info"]))?;
    }
    Ok(())
}

/// As ss(8) has it: what is zero is left out where it does.
fn info(info: &Value) -> String {
    let mut words = Vec::new();
    for (flag, word) in [("ts", "ts"), ("sack", "sack")] {
        if info[flag] == true {
            words.push(word.to_owned());
        }
    }
    // To the microsecond.
    let ms = |name: &str| info[name].as_f64().unwrap_or(0.0).round() / 1e3;
    let number = |name: &str| info[name].as_u64().unwrap_or(0);
    words.push(format!(
        "wscale:{},{}",
        info["wscale"][0], info["wscale"][1]
    ));
    words.push(format!("rto:{}", ms("rto_us")));
    if number("backoff") > 0 {
        words.push(format!("backoff:{}", number("backoff")));
    }
    words.push(format!("rtt:{:.3}/{:.3}", ms("rtt_us"), ms("rttvar_us")));
    if info["minrtt_us"].is_number() {
        words.push(format!("minrtt:{:.3}", ms("minrtt_us")));
    }
    words.push(format!("ato:{}", ms("ato_us")));
    for name in ["mss", "pmtu", "rcvmss", "advmss", "cwnd"] {
        words.push(format!("{name}:{}", number(name)));
    }
    if info["ssthresh"].is_number() {
        words.push(format!("ssthresh:{}", number("ssthresh")));
    }
    for name in [
        "bytes_sent",
        "bytes_retrans",
        "bytes_acked",
        "bytes_received",
        "segs_out",
        "segs_in",
        "data_segs_out",
        "data_segs_in",
        "unacked",
    ] {
        if number(name) > 0 {
            words.push(format!("{name}:{}", number(name)));
        }
    }
    let retrans = |at: usize| info["retrans"][at].as_u64().unwrap_or(0);
    if retrans(1) > 0 {
        words.push(format!("retrans:{}/{}", retrans(0), retrans(1)));
    }
    for name in ["lost", "sacked", "dsack_dups", "reord_seen", "rcv_ooopack"] {
        if number(name) > 0 {
            words.push(format!("{name}:{}", number(name)));
        }
    }
    for name in ["rcv_space", "rcv_ssthresh", "notsent", "snd_wnd", "rcv_wnd"] {
        if number(name) > 0 {
            words.push(format!("{name}:{}", number(name)));
        }
    }
    if info["ca_state"] != "open" {
        words.push(format!("ca:{}", info["ca_state"].as_str().unwrap_or("?")));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_names_of_ss() {
        let line = info(&json!({
            "ts": true, "sack": true, "wscale": [7, 8], "rto_us": 204_000.0, "backoff": 0,
            "rtt_us": 500.0, "rttvar_us": 250.0, "minrtt_us": null, "ato_us": 40_000.0, "mss": 1448, "pmtu": 1500,
            "rcvmss": 536, "advmss": 1448, "cwnd": 10, "ssthresh": null, "bytes_sent": 5, "retrans": [0, 2],
            "ca_state": "loss",
        }));
        assert_eq!(
            line,
            "ts sack wscale:7,8 rto:204 rtt:0.500/0.250 ato:40 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:10 \
             bytes_sent:5 retrans:0/2 ca:loss"
        );
    }
}
