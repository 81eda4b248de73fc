//! Recordings of the kernel's path, read: the same from either format, by tshark too, and what is
//! damaged or foreign is said.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::{Output, run};
use hopscope_tests::{Requirement, Suite, hopscope, hopscope_bin, repository, scratch};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    suite.case("slice_files::both_formats_read_alike", &[], alike);
    suite.case("slice_files::slices_make_up_the_whole", &[], sums);
    suite.case("slice_files::rows_make_up_the_whole", &[], rows);
    suite.case("slice_files::the_expression_chooses", &[], expression);
    let name = "slice_files::the_slowest_keep_their_numbers";
    suite.case(name, &[], numbers);
    suite.case("slice_files::damage_is_said", &[], damage);
    suite.case("slice_files::other_captures_are_refused", &[], foreign);
    suite.case("slice_files::live_options_are_refused", &[], live_options);
    suite.case("slice_files::nsdump_is_another_name", &[], nsdump);
    let name = "slice_files::json_beside_a_file_is_the_summary";
    suite.case(name, &[], json_beside_a_file);
    let name = "slice_files::what_is_not_there_is_not_exported";
    suite.case(name, &[], not_exported);
    let name = "slice_files::a_row_of_diff_is_a_line";
    suite.case(name, &[], rows_of_diff);
    let tshark = &[Requirement::Tshark];
    suite.case("slice_files::tshark_reads_comments", tshark, wireshark);
    let name = "slice_files::tools_of_wireshark_take_captures";
    suite.case(name, tshark, tools);
    let name = "slice_files::tcpdump_reads_every_frame";
    suite.case(name, &[Requirement::Tcpdump], tcpdump);
    let name = "slice_files::of_what_is_no_recording_no_more_is_read";
    suite.case(name, &[], endless);
    suite.case("slice_files::a_file_of_no_bytes_is_refused", &[], no_bytes);
}

/// Fifteen packets: to a peer on the same host, through a queue, and dropped; five with bytes.
fn golden() -> String {
    let file = repository().join("measure/trace/tests/golden/v1.3-slices.hop");
    file.display().to_string()
}

fn read(words: &[&str]) -> Result<Output> {
    let all = [&["slice", "-r"], words].concat();
    hopscope(&all)?.expect_code(0)
}

fn as_pcapng(name: &str) -> Result<PathBuf> {
    let file = scratch().join(name);
    read(&[&golden(), "-w", file.to_str().context("a path")?])?;
    Ok(file)
}

/// No block comes before the first interface.
fn tools() -> Result<()> {
    let file = as_pcapng("tools.pcapng")?;
    let out = file.with_file_name("tools-out.pcapng");
    run(Command::new("editcap").args([&file, &out]))?.expect_code(0)?;
    let mut merge = Command::new("mergecap");
    run(merge.arg("-w").args([&out, &file, &file]))?.expect_code(0)?;
    Ok(())
}

fn tcpdump() -> Result<()> {
    let file = as_pcapng("tcpdump.pcapng")?;
    let mut reads = Command::new("tcpdump");
    let out = run(reads.args(["-n", "-t", "-r"]).arg(&file))?.expect_code(0)?;
    ensure!(out.stdout.lines().count() == 15, "{out:?}");
    Ok(())
}

/// Its other end stays open: who reads on never ends.
fn endless() -> Result<()> {
    let mut slice = Command::new(hopscope_bin())
        .args(["slice", "-r", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = slice.stdin.take().context("a pipe")?;
    stdin.write_all(b"neither a trace nor a capture")?;
    ensure!(slice.wait()?.code() == Some(2));
    drop(stdin);
    Ok(())
}

fn no_bytes() -> Result<()> {
    for words in [&["-C", "0"][..], &["-C", "1", "-W", "0"]] {
        let all = [&["slice", "-w", "never.pcapng"], words].concat();
        let out = hopscope(&all)?.expect_code(2)?;
        ensure!(out.stderr.contains("0 is not in 1.."), "{}", out.stderr);
    }
    Ok(())
}

fn alike() -> Result<()> {
    let file = as_pcapng("alike.pcapng")?;
    let name = file.to_str().context("a path")?;
    for words in [
        &["-v", "-X"][..],
        &["--json"],
        &["-e", "-A", "-c", "3", "udp"],
    ] {
        let hop = read(&[&[golden().as_str()], words].concat())?;
        let pcapng = read(&[&[name], words].concat())?;
        ensure!(hop.stdout.lines().count() > 3, "{words:?}: {}", hop.stdout);
        ensure!(hop.stdout == pcapng.stdout, "{words:?} differ");
    }
    // And back.
    let again = file.with_extension("hop");
    let again = again.to_str().context("a path")?;
    read(&[name, "-o", again])?;
    let (was, is) = (std::fs::read(golden())?, std::fs::read(again)?);
    ensure!(read(&[again, "-v"])?.stdout == read(&[&golden(), "-v"])?.stdout);
    ensure!(is.len() < was.len() + 200, "{} and {}", is.len(), was.len());
    Ok(())
}

fn objects(output: &str) -> Result<(Vec<Value>, Value)> {
    let lines: Result<Vec<Value>, _> = output.lines().map(serde_json::from_str).collect();
    let mut lines = lines?;
    let last = lines.pop().context("no line")?;
    ensure!(last["type"] == "slice_summary", "the last line: {last}");
    Ok((lines, last))
}

fn sums() -> Result<()> {
    let (packets, summary) = objects(&read(&[&golden(), "--json"])?.stdout)?;
    ensure!(packets.len() == 15 && summary["packets"] == 15, "{summary}");
    for packet in &packets {
        let slices = packet["slices"].as_array().context("slices")?;
        let sum = |name: &str| slices.iter().filter_map(|s| s[name].as_u64()).sum::<u64>();
        let whole = packet["whole"]["raw_ns"].as_u64().context("whole")?;
        ensure!(sum("raw_ns") == whole && whole > 0, "{packet}");
        for slice in slices {
            let number = |name: &str| slice[name].as_i64().context("a number");
            let left = number("raw_ns")? - number("correction_ns")?;
            ensure!(number("corrected_ns")? == left.max(0), "{slice}");
            let below = slice["flags"]
                .as_array()
                .is_some_and(|f| f.contains(&"below_zero".into()));
            ensure!(below == (left < 0), "{slice}");
        }
    }
    let below: u64 = summary["slices"]
        .as_array()
        .context("rows")?
        .iter()
        .filter_map(|row| row["below_zero"].as_u64())
        .sum();
    ensure!(below > 0, "the recording has one below zero");
    Ok(())
}

fn rows() -> Result<()> {
    let out = hopscope(&["export", &golden(), "--format", "json"])?.expect_code(0)?;
    let lines: Result<Vec<Value>, _> = out.stdout.lines().map(serde_json::from_str).collect();
    let lines = lines?;
    let mut wholes = 0;
    for whole in lines.iter().filter(|row| row["type"] == "whole") {
        let its = lines
            .iter()
            .filter(|row| row["type"] == "slice" && row["packet"] == whole["packet"]);
        let sum: u64 = its.filter_map(|row| row["raw_ns"].as_u64()).sum();
        ensure!(Some(sum) == whole["raw_ns"].as_u64(), "{whole}");
        wholes += 1;
    }
    ensure!(wholes == 15, "{wholes} packets");
    ensure!(lines.iter().any(|row| row["type"] == "bypass"));
    Ok(())
}

/// Packets that are not in the order of time have no first one to count from.
fn numbers() -> Result<()> {
    let heads = |out: &Output| -> Vec<String> {
        let head = |line: &str| line.split_once(" | ").map(|(head, _)| head.to_owned());
        let mut heads: Vec<String> = out.stdout.lines().filter_map(head).collect();
        heads.sort();
        heads
    };
    let as_they_are = heads(&read(&[&golden(), "-S"])?);
    let words = ["report", &golden(), "--by", "packet", "-n", "100"];
    let slowest = heads(&hopscope(&words)?.expect_code(0)?);
    ensure!(as_they_are.len() == 15, "{as_they_are:?}");
    ensure!(slowest == as_they_are, "{slowest:#?}\n{as_they_are:#?}");
    let relative = heads(&read(&[&golden()])?);
    ensure!(
        relative != as_they_are,
        "no relative number in the recording"
    );
    Ok(())
}

fn expression() -> Result<()> {
    let count = |words: &[&str]| -> Result<u64> {
        let out = read(&[&[golden().as_str(), "--json"], words].concat())?;
        objects(&out.stdout)?.1["packets"]
            .as_u64()
            .context("packets")
    };
    // Three were dropped, and the bytes of one of these are those of a TCP segment.
    ensure!(count(&["udp"])? == 2);
    ensure!(count(&["tcp", "port", "80"])? == 13);
    ensure!(count(&["not host 10.0.0.1"])? == 0);
    ensure!(count(&["--comm", "curl"])? == 12);
    ensure!(count(&["--pid", "78"])? == 0);
    ensure!(count(&["--min-latency", "5us"])? == 6);
    let wrong = hopscope(&["slice", "-r", &golden(), "tcp prt 80"])?.expect_code(2)?;
    ensure!(wrong.stderr.contains("at byte 4"), "{}", wrong.stderr);
    // Time to live is in none of the records without bytes.
    let unknown = read(&[&golden(), "ip[8] = 64"])?;
    ensure!(
        unknown.stderr.contains("10 packets excluded"),
        "{}",
        unknown.stderr
    );
    Ok(())
}

fn damage() -> Result<()> {
    let whole = std::fs::read(as_pcapng("whole.pcapng")?)?;
    let file = scratch().join("damaged.pcapng");
    let name = file.to_str().context("a path")?;
    let of = |bytes: &[u8]| -> Result<String> {
        std::fs::write(&file, bytes)?;
        Ok(read(&[name])?.stdout)
    };
    let cut = of(&whole[..whole.len() - 3000])?;
    ensure!(
        cut.contains("DAMAGED: ") && cut.contains("not ended in order"),
        "{cut}"
    );
    ensure!(cut.contains("is cut off"), "{cut}");
    // In the middle of the first frame's bytes that were captured.
    let at = whole
        .windows(10)
        .position(|bytes| bytes == b"abcdefghij")
        .context("captured bytes")?;
    let mut flipped = whole.clone();
    flipped[at] ^= 1;
    let flipped = of(&flipped)?;
    ensure!(
        flipped.contains("DAMAGED: 1 packets are damaged or missing"),
        "{flipped}"
    );
    ensure!(
        flipped.contains("14 packets chosen of 14 read"),
        "{flipped}"
    );
    Ok(())
}

fn foreign() -> Result<()> {
    let other = repository().join("tests/golden/stamps.pcapng");
    let other = other.to_str().context("a path")?;
    let calls = repository().join("measure/trace/tests/golden/v1.hop");
    let calls = calls.to_str().context("a path")?;
    let text = repository().join("README.md");
    for (file, said) in [
        (other, "is a capture of another tool"),
        (calls, "holds no slices"),
        (text.to_str().context("a path")?, "not a hopscope trace"),
        ("/nowhere/x.hop", "No such file"),
    ] {
        let out = hopscope(&["slice", "-r", file])?.expect_code(2)?;
        ensure!(
            out.stdout.is_empty() && out.stderr.contains(said),
            "{}",
            out.stderr
        );
        ensure!(out.stderr.lines().count() == 1, "{}", out.stderr);
    }
    Ok(())
}

fn live_options() -> Result<()> {
    for words in [
        &["-i", "lo"][..],
        &["--netns", "x"],
        &["--backend", "raw"],
        &["--regions", "min"],
        &["-L"],
        &["-d", "1"],
        &["-s", "64"],
        &["--duty", "1/16"],
        &["-C", "1"],
        &["--", "true"],
    ] {
        let file = golden();
        let all = [&["slice", "-r", &file], words].concat();
        let out = hopscope(&all)?.expect_code(2)?;
        ensure!(
            out.stderr.contains("cannot be used with"),
            "{words:?}: {}",
            out.stderr
        );
    }
    Ok(())
}

fn nsdump() -> Result<()> {
    let link = scratch().join("nsdump");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(hopscope_bin(), &link)?;
    let out =
        run(Command::new(&link).args(["-nr", &golden(), "-c", "1", "-q", "tcp", "port", "80"]))?;
    let out = out.expect_code(0)?;
    let expected = "veth0 > veth1 IP 10.0.0.1.40000 > 10.0.0.2.80: tcp 64 | curl[123] tx call .6";
    ensure!(out.stdout.contains(expected), "{}", out.stdout);
    let nsdump = |words: &[&str]| -> Result<String> {
        let golden = golden();
        let all = [&["-r", golden.as_str(), "-c", "1"], words].concat();
        Ok(run(Command::new(&link).args(all))?.expect_code(0)?.stdout)
    };
    for (words, begins) in [
        (&["-nn", "-l", "-t"][..], "veth0 > veth1 IP"),
        (
            &["-n", "-n", "-l", "-l", "-c", "2", "-t", "-c", "1"],
            "veth0 > veth1 IP",
        ),
        (&["-tt"], "1"),
        (&["-ttt"], "00:00:00.000000000 veth0"),
        (&["-tttt"], "20"),
        (&["-ttttt"], "00:00:00.000000000 veth0"),
    ] {
        let shown = nsdump(words)?;
        ensure!(shown.starts_with(begins), "{words:?}: {shown}");
    }
    let help = run(Command::new(&link).arg("-h"))?.expect_code(0)?.stdout;
    ensure!(
        help.contains("Usage: nsdump [") && help.contains("  nsdump -i eth0"),
        "{help}"
    );
    ensure!(
        !help.contains("slice slice") && !help.contains("hopscope slice"),
        "{help}"
    );
    let version = run(Command::new(&link).arg("--version"))?.expect_code(0)?;
    ensure!(version.stdout.starts_with("nsdump "), "{}", version.stdout);
    let there = run(Command::new(&link).arg("-D"))?.expect_code(0)?.stdout;
    ensure!(there.lines().any(|line| line == "1.lo"), "{there}");
    Ok(())
}

/// An empty file would say that nothing happened.
fn not_exported() -> Result<()> {
    let calls = repository().join("measure/trace/tests/golden/v1.hop");
    let calls = calls.display().to_string();
    for (file, words, says) in [
        (&golden(), &["folded"][..], "it holds slices"),
        (&golden(), &["hgrm"], "it holds slices"),
        (
            &golden(),
            &["csv", "--what", "functions"],
            "it holds slices",
        ),
        (&golden(), &["json", "--what", "packets"], "it holds slices"),
        (&calls, &["json", "--what", "packets"], "it holds calls"),
        (&calls, &["pcapng"], "it holds calls"),
    ] {
        let out = scratch().join("empty");
        let to = ["-o", out.to_str().context("a path")?];
        let all = [&["export", file, "--format"], words, &to].concat();
        hopscope(&all)?.expect_refusal(&["holds no", says])?;
        ensure!(!out.exists(), "{words:?}");
    }
    let later = ["export", &golden(), "--format", "csv", "--from", "9h"];
    let out = hopscope(&later)?.expect_code(0)?;
    ensure!(
        out.stderr.contains("no packet was sliced"),
        "{}",
        out.stderr
    );
    Ok(())
}

/// With all figures when asked.
fn rows_of_diff() -> Result<()> {
    let golden = golden();
    let diff = |more: &[&str]| -> Result<String> {
        let words = [&["diff", &golden, &golden], more].concat();
        Ok(hopscope(&words)?.expect_code(0)?.stdout)
    };
    let is_row = |line: &&str| line.starts_with("too few ") || line.starts_with("same ");
    let (short, json) = (diff(&[])?, diff(&["--json"])?);
    let rows = json.lines().filter(|line| line.contains("\"row\"")).count();
    let shown = short.lines().filter(is_row);
    ensure!(rows > 10 && shown.clone().count() == rows, "{short}");
    ensure!(
        shown.clone().any(|line| line.ends_with("  whole")),
        "{short}"
    );
    ensure!(
        short.contains("packets A") && !short.contains("calls"),
        "{short}"
    );
    ensure!(diff(&["--by", "slice"])? == short);
    let calls = repository().join("measure/trace/tests/golden/v1.hop");
    let calls = calls.to_str().context("a path")?;
    hopscope(&["diff", calls, &golden, "--by", "slice"])?
        .expect_refusal(&["v1.hop", "holds no slices"])
}

/// Packets are in the file, what a program wants to know of them on stdout.
fn json_beside_a_file() -> Result<()> {
    let file = scratch().join("beside.hop");
    let file = file.to_str().context("a path")?;
    let out = read(&[&golden(), "-o", file, "--json"])?;
    let (packets, summary) = objects(&out.stdout)?;
    ensure!(packets.is_empty() && summary["packets"] == 15, "{summary}");
    Ok(())
}

fn wireshark() -> Result<()> {
    let file = as_pcapng("tshark.pcapng")?;
    let fields = [
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
        "frame.comment",
        "_ws.malformed",
    ];
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(&file)
        .args(["-T", "fields", "-E", "separator=/t"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let out = run(&mut command)?.expect_code(0)?;
    let seen: Vec<Vec<&str>> = out
        .stdout
        .lines()
        .map(|l| l.split('\t').collect())
        .collect();
    let (packets, _) = objects(&read(&[&golden(), "--json"])?.stdout)?;
    let text = read(&[&golden()])?.stdout;
    ensure!(
        seen.len() == packets.len(),
        "{} frames: {}",
        seen.len(),
        out.stdout
    );
    for ((frame, packet), line) in seen.iter().zip(&packets).zip(text.lines()) {
        let comment = line.split_once(" | ").context("slices")?.1;
        ensure!(
            frame.get(3) == Some(&comment),
            "{frame:?} instead of {comment}"
        );
        let at = packet["realtime_ns"].as_u64().context("a time")?;
        let epoch = format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000);
        ensure!(
            frame.first() == Some(&epoch.as_str()),
            "{frame:?} instead of {epoch}"
        );
        let captured = packet["captured_bytes"].as_u64().unwrap_or(0).to_string();
        ensure!(frame.get(2) == Some(&captured.as_str()), "{frame:?}");
    }
    ensure!(
        seen.iter().any(|frame| frame.get(2) == Some(&"118")),
        "{}",
        out.stdout
    );
    let stderr = out.stderr.to_lowercase();
    ensure!(
        !stderr.contains("error") && !stderr.contains("damaged"),
        "{stderr}"
    );
    Ok(())
}
