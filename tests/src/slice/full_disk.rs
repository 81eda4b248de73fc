//! A file that cannot be written on: what was captured and lost is said all the same, and how much of it is in the file.
use super::losses::namespace;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, hopscope, hopscope_bin, scratch};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};

/// No file is larger, so that as many packets are enough.
const MOST: u64 = 1_000_000;

pub(super) fn run() -> Result<()> {
    namespace()?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
    for (option, name) in [("-o", "full.hop"), ("-w", "full.pcapng")] {
        let disk = scratch().join(name).with_extension("disk");
        std::fs::create_dir_all(&disk)?;
        let (kind, size) = (Some("tmpfs"), Some("size=100k"));
        mount(None::<&str>, &disk, kind, MsFlags::empty(), size)?;
        fills(option, &disk.join(name)).with_context(|| option.to_owned())?;
    }
    Ok(())
}

fn fills(option: &str, file: &Path) -> Result<()> {
    let ready = scratch().join(format!("ready{option}"));
    let mut command = Command::new(hopscope_bin());
    command
        .args(["-q", "slice", "--no-calibration", "--ready-file"])
        .arg(&ready)
        .arg(option)
        .arg(file)
        .arg("udp port 7733")
        .stderr(Stdio::piped());
    let mut slicer = Target::spawn_with_ready_file(&mut command, &ready)?;
    let reader = UdpSocket::bind("127.0.0.1:7733")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    let mut sent = 0;
    while slicer.child().try_wait()?.is_none() {
        ensure!(sent < MOST, "{sent} packets, and it goes on");
        sender.send_to(b"one more", "127.0.0.1:7733")?;
        reader.recv(&mut [0; 8])?;
        sent += 1;
    }
    let out = slicer.output()?;
    let said = String::from_utf8(out.stderr)?;
    ensure!(out.status.code() == Some(2), "{}: {said}", out.status);
    let last = said.lines().last().context("it said nothing")?;
    let is_why = last.contains("No space left") && last.starts_with("hopscope: ");
    ensure!(is_why, "{said}");
    let captured = number_before(&said, " packets captured")?;
    ensure!(said.contains(" packets lost by hopscope"), "{said}");
    let (there, given) = last
        .split_once(" is incomplete, ")
        .and_then(|(_, rest)| rest.split_once(" packets are in it"))
        .and_then(|(counts, _)| counts.split_once(" of "))
        .with_context(|| last.to_owned())?;
    let (there, given): (u64, u64) = (there.parse()?, given.parse()?);
    ensure!(
        0 < there && there <= given && given <= captured && captured <= sent,
        "{sent} sent: {said}"
    );
    let file = file.to_str().context("a path in UTF-8")?;
    let read = hopscope(&["slice", "-r", file])?.expect_code(0)?;
    let read = number_before(&read.stdout, " packets chosen of")?;
    ensure!(read == there, "{read} of {there} are read");
    Ok(())
}

/// With commas between its thousands.
fn number_before(text: &str, words: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.split_once(words));
    let (number, _) = line.with_context(|| format!("no `{words}`: {text}"))?;
    Ok(number.replace(',', "").parse()?)
}
