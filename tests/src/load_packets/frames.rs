//! What is sent, as other tools read it.
use super::{lines, number, packets};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, scratch};
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "load_packets::frames_are_right_in_tshark",
        &[Requirement::Tshark],
        in_tshark,
    );
    suite.case("load_packets::replay_sends_what_was_captured", &[], replay);
    suite.case("load_packets::rules_are_those_that_are_hit", &[], rules);
}

fn capture(name: &str, arguments: &[&str]) -> Result<std::path::PathBuf> {
    let path = scratch().join(format!("packets-{name}-{}.pcap", std::process::id()));
    let port = format!("pcap:{}", path.display());
    let mut all = vec!["--tx", &port, "--rate", "max", "--json"];
    all.extend(arguments);
    let (_, summary) = lines(packets(None, &all)?)?;
    ensure!(number(&summary, "sent")? > 0, "{summary}");
    Ok(path)
}

/// One line of fields for each frame.
fn tshark(path: &Path, fields: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-T", "fields"]);
    for layer in ["ip", "udp", "tcp"] {
        command.args(["-o", &format!("{layer}.check_checksum:TRUE")]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let output = run(&mut command)?.expect_code(0)?;
    Ok(output.stdout.lines().map(String::from).collect())
}

/// Frame by frame another run's number, of which there are 256, as if each had captured one. The
/// stamp, which begins at `payload`, sums to zero as before, so no other checksum changes.
fn in_every_run(path: &Path, payload: usize) -> Result<()> {
    let mut bytes = std::fs::read(path)?;
    let (mut at, mut number) = (24, 0u8);
    while at + 16 <= bytes.len() {
        let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into()?) as usize;
        let stamp = &mut bytes[at + 16 + payload..][..18];
        stamp[1] = number;
        stamp[16..].fill(0);
        let sum: u64 = stamp
            .as_chunks::<2>()
            .0
            .iter()
            .map(|word| u64::from(u16::from_be_bytes(*word)))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
        stamp[16..].copy_from_slice(&checksum.to_be_bytes());
        number = number.wrapping_add(1);
        at += 16 + len;
    }
    std::fs::write(path, bytes)?;
    Ok(())
}

fn in_tshark() -> Result<()> {
    let kinds: [(&str, &[&str], &str); 6] = [
        ("udp", &["--protocol", "udp"], "udp"),
        (
            "tcp",
            &["--protocol", "tcp", "--size", "76:7,594:4,1518:1"],
            "tcp",
        ),
        ("icmp", &["--protocol", "icmp"], "icmp"),
        ("udp6", &["--ipv6", "--size", "84:7,594:4,1518:1"], "udp"),
        (
            "tcp6",
            &["--ipv6", "--protocol", "tcp", "--size", "96,1518"],
            "tcp",
        ),
        (
            "icmp6",
            &["--ipv6", "--protocol", "icmp", "--size", "84,1499"],
            "icmpv6",
        ),
    ];
    for (name, arguments, layer) in kinds {
        let mut all = vec!["-c", "500", "--flows", "70"];
        all.extend(arguments);
        if !arguments.contains(&"--size") {
            all.extend(["--size", "imix"]);
        }
        let path = capture(name, &all)?;
        if layer == "udp" {
            in_every_run(&path, if name.ends_with('6') { 62 } else { 42 })?;
        }
        // Status 1 is good; an empty column is a layer that is not there.
        let status = format!("{layer}.checksum.status");
        let fields = [
            "frame.protocols",
            "ip.checksum.status",
            &status,
            "_ws.malformed",
            "_ws.expert.severity",
        ];
        let rows = tshark(&path, &fields)?;
        ensure!(rows.len() == 500, "{name}: {} frames", rows.len());
        for row in &rows {
            let columns: Vec<&str> = row.split('\t').collect();
            let [protocols, ip, transport, malformed, severity] = columns[..] else {
                anyhow::bail!("{name}: {row:?}");
            };
            ensure!(protocols.contains(layer), "{name}: {row}");
            ensure!(
                ip == if name.ends_with('6') { "" } else { "1" },
                "{name}: IPv4 checksum: {row}"
            );
            ensure!(transport == "1", "{name}: checksum: {row}");
            ensure!(malformed.is_empty(), "{name}: malformed: {row}");
            ensure!(
                layer != "udp" || protocols.ends_with("udp:data"),
                "{name}: taken for another protocol: {row}"
            );
            // 8 MiB is the error level (PI_ERROR), 6 MiB warnings: data of an unseen connection.
            let worst = severity
                .split(',')
                .filter_map(|s| s.parse::<u32>().ok())
                .max();
            ensure!(worst.unwrap_or(0) < 0x0080_0000, "{name}: {row}");
        }
        std::fs::remove_file(path)?;
    }
    Ok(())
}

fn replay() -> Result<()> {
    let path = capture("replayed", &["-c", "300", "--flows", "7", "--size", "imix"])?;
    let file = path.to_str().context("a path in UTF-8")?;
    let again = path.with_extension("again.pcap");
    let port = format!("pcap:{}", again.display());
    packets(
        None,
        &[
            "--replay", file, "--tx", &port, "--rate", "max", "-c", "600",
        ],
    )?
    .expect_code(0)?;
    let frames = |path: &Path| -> Result<Vec<u8>> {
        // Behind each record's time: what differs is only when.
        let bytes = std::fs::read(path)?;
        let (mut at, mut out) = (24, Vec::new());
        while at + 16 <= bytes.len() {
            let len = u32::from_le_bytes(bytes[at + 8..at + 12].try_into()?) as usize;
            out.extend_from_slice(&bytes[at + 8..at + 16 + len]);
            at += 16 + len;
        }
        Ok(out)
    };
    let (once, twice) = (frames(&path)?, frames(&again)?);
    ensure!(once.len() > 300 * 60, "{} bytes", once.len());
    ensure!(
        twice == [once.clone(), once].concat(),
        "other frames than those captured, twice"
    );

    let memory = [
        "--tx", "mem:", "--rx", "mem:", "--rate", "50k", "-c", "900", "--json",
    ];
    let (_, summary) = lines(packets(None, &[&memory[..], &["--replay", file]].concat())?)?;
    for (field, expected) in [
        ("sent", 900),
        ("received", 900),
        ("foreign", 0),
        ("duplicate", 0),
    ] {
        ensure!(number(&summary, field)? == expected, "{field}: {summary}");
    }
    std::fs::remove_file(path)?;
    std::fs::remove_file(again)?;
    Ok(())
}

/// Generated, written, read again: the same rules, and traffic in each.
fn rules() -> Result<()> {
    for count in ["1000", "3000"] {
        let file = scratch().join(format!("packets-rules-{count}-{}", std::process::id()));
        let path = file.to_str().context("a path in UTF-8")?;
        packets(None, &["--rules", count, "--write-rules", path])?.expect_code(0)?;
        let text = std::fs::read_to_string(&file)?;
        ensure!(text.lines().count().to_string() == count, "{count} rules");
        let again = format!("{path}-again");
        packets(None, &["--rules", path, "--write-rules", &again])?.expect_code(0)?;
        ensure!(
            std::fs::read_to_string(&again)? == text,
            "read and written, they differ"
        );
        let memory = [
            "--tx", "mem:", "--rx", "mem:", "--rate", "50k", "-c", count, "--size", "76", "--json",
        ];
        let (_, summary) = lines(packets(None, &[&memory[..], &["--rules", path]].concat())?)?;
        ensure!(
            summary["received"] == summary["sent"] && summary["corrupted"] == 0,
            "{summary}"
        );
        std::fs::remove_file(file)?;
        std::fs::remove_file(again)?;
    }
    Ok(())
}
