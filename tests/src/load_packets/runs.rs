//! Whole runs over a real cable: what is said adds up, in every line and every file.
use super::{Cable, lines, number, packets};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts, scratch};
use serde_json::Value;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "load_packets::every_line_and_row_balances",
        &[Requirement::Netns],
        balances,
    );
    suite.case(
        "load_packets::the_far_end_sends_back",
        &[Requirement::Netns],
        reflects,
    );
    suite.case("load_packets::a_search_says_what_limits_it", &[], search);
}

fn balanced(line: &Value) -> Result<u64> {
    let (sent, received) = (number(line, "sent")?, number(line, "received")?);
    ensure!(
        sent == received + number(line, "lost")?,
        "does not balance: {line}"
    );
    Ok(sent)
}

fn balances() -> Result<()> {
    let cable = Cable::lay("rows")?;
    let count = counts().pick("5000", "500000");
    for kind in ["csv", "hop"] {
        let file = scratch().join(format!("packets-{}.{kind}", std::process::id()));
        let path = file.to_str().context("a path in UTF-8")?;
        let ports = [
            "--tx",
            "packet:p0",
            "--rx",
            "packet:p1",
            "--arrivals",
            "poisson",
            "--flows",
            "50",
        ];
        let rest = [
            "--rate", "10k", "-c", count, "-d", "600", "--json", "-w", path,
        ];
        let (intervals, summary) = lines(packets(Some(&cable.0), &[&ports[..], &rest].concat())?)?;
        let sent = balanced(&summary)?;
        ensure!(sent.to_string() == count, "{summary}");
        let of_lines: u64 = intervals.iter().map(balanced).sum::<Result<u64>>()?;
        ensure!(of_lines == sent, "{of_lines} in the lines, {sent} in all");
        for field in [
            "corrupted",
            "duplicate",
            "foreign",
            "damaged",
            "rows_unwritten",
            "before_sent",
        ] {
            ensure!(number(&summary, field)? == 0, "{field}: {summary}");
        }
        if kind == "csv" {
            let text = std::fs::read_to_string(&file)?;
            let rows: Vec<Vec<&str>> = text
                .lines()
                .skip(1)
                .map(|row| row.split(',').collect())
                .collect();
            ensure!(
                rows.len() as u64 == sent && rows.iter().all(|row| row.len() == 9),
                "{} rows",
                rows.len()
            );
            let lost = rows.iter().filter(|row| row[8].starts_with("lost")).count();
            ensure!(
                lost as u64 == number(&summary, "lost")?,
                "{lost} rows are lost: {summary}"
            );
            let numbers: std::collections::BTreeSet<u64> = rows
                .iter()
                .map(|row| row[0].parse())
                .collect::<Result<_, _>>()?;
            ensure!(
                numbers.len() as u64 == sent && numbers.last() == Some(&(sent - 1)),
                "each number once"
            );
        } else {
            let output =
                hopscope_tests::command::hopscope(&["report", path, "--json"])?.expect_code(0)?;
            let stream = output.stdout.lines().find(|line| line.contains("\"sent\""));
            let stream: Value = serde_json::from_str(stream.context("no packets in the report")?)?;
            ensure!(
                stream.to_string().contains(&format!("\"sent\":{sent}")),
                "{stream}"
            );
        }
        std::fs::remove_file(file)?;
    }
    Ok(())
}

fn reflects() -> Result<()> {
    let cable = Cable::lay("back")?;
    let ready = scratch().join(format!("packets-ready-{}", std::process::id()));
    let mut far = Command::new("ip");
    far.args(["netns", "exec", &cable.0])
        .arg(hopscope_tests::hopscope_bin());
    far.stdout(std::process::Stdio::piped());
    far.args([
        "load",
        "packets",
        "--reflect",
        "--rx",
        "packet:p1",
        "--json",
        "--ready-file",
    ])
    .arg(&ready);
    let far = Target::spawn_with_ready_file(&mut far, &ready)?;
    let there_and_back = [
        "--tx",
        "packet:p0",
        "--rx",
        "packet:p0",
        "--rate",
        "5k",
        "-c",
        "2000",
        "-d",
        "600",
        "--json",
    ];
    // The far end's MAC address is that of the cable's other end: nobody has to say it.
    let (_, summary) = lines(packets(Some(&cable.0), &there_and_back)?)?;
    ensure!(balanced(&summary)? == 2000, "{summary}");
    ensure!(
        number(&summary, "received")? > 0 && number(&summary, "corrupted")? == 0,
        "{summary}"
    );
    far.signal(nix::sys::signal::Signal::SIGTERM)?;
    let output = far.output()?;
    ensure!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let (received, sent) = (number(&said, "received")?, number(&said, "sent")?);
    ensure!(
        received == sent + number(&said, "dropped")? + number(&said, "unfit")?,
        "{said}"
    );
    ensure!(sent >= number(&summary, "received")?, "{said} {summary}");
    Ok(())
}

/// A rate that no machine sends: the search must not take the generator's limit for another's.
fn search() -> Result<()> {
    let arguments = [
        "--tx",
        "mem:",
        "--rx",
        "mem:",
        "--find-max",
        "--rate",
        "500M",
        "-d",
        "50ms",
        "--resolution",
        "50",
        "--json",
    ];
    let output = packets(None, &arguments)?;
    let text = output.stdout.clone();
    let trials: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let first = trials.first().context("no trial")?;
    ensure!(
        first["type"] == "trial" && first["verdict"] == "generator_too_slow",
        "{first}"
    );
    ensure!(number(first, "unsent")? > 0, "{first}");
    let summary = trials.last().context("no summary")?;
    ensure!(summary["limited_by"] == "generator_too_slow", "{summary}");
    Ok(())
}
