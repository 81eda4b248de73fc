//! What cannot be done is said in one line, with its reason.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Output, hopscope, hopscope_bin, scratch};
use std::process::Command;

pub(super) fn run() -> Result<()> {
    let dir = scratch();
    let file = |name: &str, text: &str| -> Result<String> {
        let path = dir.join(name);
        std::fs::write(&path, text)?;
        Ok(path.to_str().context("a path in UTF-8")?.to_owned())
    };
    let unknown = file("unknown.conf", "# slices\na = tx_done .. nowhere\n")?;
    let backwards = file("backwards.conf", "a = rx_ip .. tx_done\n")?;
    let empty = file("empty.conf", "# none\n")?;
    for (arguments, words) in [
        (
            &["--regions", &unknown][..],
            &["line 2", "nowhere", "-L"][..],
        ),
        (
            &["--regions", &backwards],
            &["line 1", "does not come before"],
        ),
        (&["--regions", &empty], &["no region"]),
        (&["--regions", "most"], &["most", "preset"]),
        (&["tcp prot 80"], &["filter", "byte 4"]),
        (&["tcp", "and", "port"], &["filter", "byte 12"]),
        (&["ether host 1:2:3:4:5:6"], &["filter", "byte 11"]),
        (
            &["-i", "hopscope-none"],
            &["hopscope-none", "no such interface"],
        ),
        (&["--netns", "hopscope-none"], &["hopscope-none"]),
        (&["--cgroup", "/hopscope-none"], &["/hopscope-none"]),
        (&["--cgroup", "/proc"], &["/proc", "cgroup2"]),
        (&["--slots", "100"], &["100", "power of two"]),
        (&["--comm", "a-name-longer-than-15"], &["15 bytes"]),
        (&["--event", "no-such-event"], &["no-such-event"]),
    ] {
        let all = [&["slice", "-d", "1"], arguments].concat();
        let refused = hopscope(&all)?.expect_refusal(words);
        refused.with_context(|| format!("{arguments:?}"))?;
    }
    Ok(())
}

/// Root that may not load programs, and somebody who is not root.
pub(super) fn unprivileged() -> Result<()> {
    let none = "--bounding-set=-bpf,-perfmon,-sys_admin,-net_admin";
    let out = command(
        Command::new("setpriv")
            .args(["--inh-caps=-all", none])
            .arg(hopscope_bin())
            .args(["slice", "-d", "1"]),
    )?;
    out.expect_refusal(&["not allowed", "CAP_BPF"])?;
    // The binary may lie where only root can look; a copy of it does not.
    let dir = std::env::temp_dir().join(format!("hopscope-slice-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let copy = dir.join("hopscope");
    std::fs::copy(hopscope_bin(), &copy)?;
    let out = command(
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy)
            .args(["slice", "-d", "1"]),
    );
    std::fs::remove_dir_all(&dir)?;
    out?.expect_refusal(&["not allowed", "CAP_BPF"])
}

/// Each prefix of a recording is refused in one line, or what it lacks is said.
pub(super) fn damaged() -> Result<()> {
    let dir = scratch();
    for (flag, name) in [("-o", "whole.hop"), ("-w", "whole.pcapng")] {
        let path = dir.join(name);
        let whole = path.to_str().context("a path in UTF-8")?;
        record(flag, whole)?;
        let bytes = std::fs::read(whole)?;
        read(whole)?.expect_code(0)?;
        let mut said = 0;
        for length in (0..bytes.len()).step_by((bytes.len() / 40).max(1)) {
            let cut = dir.join(format!("cut-{name}"));
            std::fs::write(&cut, &bytes[..length])?;
            let out = read(cut.to_str().context("a path in UTF-8")?)?;
            let words = format!("{}{}", out.stdout, out.stderr);
            match out.code {
                Some(2) => out.expect_refusal(&[])?,
                _ => {
                    let admits = ["DAMAGED", "not ended in order"];
                    ensure!(
                        admits.iter().any(|words_of| words.contains(words_of)),
                        "{length} of {} bytes of {name} pass for whole: {words}",
                        bytes.len()
                    );
                    said += 1;
                }
            }
        }
        ensure!(said > 0, "no part of {name} was read");
    }
    Ok(())
}

fn read(path: &str) -> Result<Output> {
    hopscope(&["slice", "-r", path])
}

/// A few packets over the loopback device.
fn record(flag: &str, path: &str) -> Result<()> {
    let script = "import socket\n\
        a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        a.bind(('127.0.0.1', 0))\n\
        for n in range(50):\n    a.sendto(b'x' * n, a.getsockname()); a.recv(100)\n";
    let out = hopscope(&[
        "-q",
        "slice",
        "--no-calibration",
        flag,
        path,
        "--",
        "python3",
        "-c",
        script,
    ])?;
    out.expect_code(0)?;
    Ok(())
}
