//! Packets for Wireshark: tshark finds each by its comment, at its time.
use super::{export, of_kind, packets, rows, tricky};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, hopscope, repository, scratch};
use serde_json::Value;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Tshark];
    suite.case("export::pcapng_is_read_by_tshark", needs, tshark);
    suite.case("export::pcapng_is_the_golden_file", &[], golden);
    suite.case("export::pcapng_of_calls_is_refused", &[], no_packets);
}

fn tshark() -> Result<()> {
    let file = scratch().join("out.pcapng");
    let name = file.display().to_string();
    export(&packets(), &["--format", "pcapng", "-o", &name])?;
    let show = |filter: &str| -> Result<Vec<String>> {
        let out = run(Command::new("tshark")
            .args([
                "-r",
                &name,
                "-Y",
                filter,
                "-T",
                "fields",
                "-E",
                "separator=|",
            ])
            .args([
                "-e",
                "frame.interface_name",
                "-e",
                "frame.len",
                "-e",
                "frame.cap_len",
            ])
            .args(["-e", "frame.time_epoch", "-e", "frame.comment"]))?
        .expect_code(0)?;
        Ok(out.stdout.lines().map(str::to_owned).collect())
    };
    let (rows, _) = rows(&packets(), &["--what", "packets"])?;
    let sent = of_kind(&rows, "packet").count();
    let arrived = |row: &&Value| row["lost"] == 0;
    let received = of_kind(&rows, "packet").filter(arrived).count();
    let again = of_kind(&rows, "duplicate").count();
    ensure!(sent > received && again > 0, "the recording has every case");
    let all = show("frame")?;
    ensure!(all.len() == sent + received + again, "{} frames", all.len());
    ensure!(show("frame.comment contains \": lost\"")?.len() == sent - received);
    let times: Vec<&str> = all.iter().filter_map(|l| l.split('|').nth(3)).collect();
    ensure!(times.is_sorted(), "frames are not in the order of time");

    let packet = of_kind(&rows, "packet").find(arrived).context("a packet")?;
    let (seq, flow) = (&packet["seq"], &packet["flow"]);
    let its = show(&format!(
        "frame.comment contains \"seq {seq} flow {flow}:\""
    ))?;
    ensure!(its.len() == 2, "seq {seq}: {its:?}");
    let fields: Vec<Vec<&str>> = its.iter().map(|l| l.split('|').collect()).collect();
    ensure!(
        fields[0][0].starts_with("sent ") && fields[1][0].starts_with("received "),
        "{its:?}"
    );
    for frame in &fields {
        ensure!(
            frame[1].parse().ok() == packet["frame_bytes"].as_u64(),
            "{its:?}"
        );
        ensure!(frame[2] == "0", "bytes that nobody recorded: {its:?}");
        ensure!(
            frame[4].contains("left to arrived") && frame[4].contains(" ns"),
            "{its:?}"
        );
    }
    Ok(())
}

fn no_packets() -> Result<()> {
    let recording = tricky().display().to_string();
    hopscope(&["export", &recording, "--format", "pcapng"])?
        .expect_refusal(&["no generated packets", "hopscope load packets"])
}

/// Byte for byte. `GOLDEN=write` writes it anew; what changed is then read in the commit.
fn golden() -> Result<()> {
    let path = repository().join("tests/golden/stamps.pcapng");
    let file = scratch().join("out.pcapng");
    export(
        &packets(),
        &["--format", "pcapng", "-o", &file.display().to_string()],
    )?;
    let got = std::fs::read(&file)?;
    if std::env::var_os("GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(&path, &got)?;
    }
    let expected = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let first = got.iter().zip(&expected).position(|(a, b)| a != b);
    ensure!(
        got == expected,
        "{} bytes instead of {}; the first other one: {first:?}",
        got.len(),
        expected.len()
    );
    Ok(())
}
