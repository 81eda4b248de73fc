//! What cannot be joined is said in one line, with its reason.
use super::scene::{ANYWAY, dir, splice, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::{Output, run as command};
use hopscope_tests::{Target, hopscope, hopscope_bin};
use std::process::Command;

pub(super) fn run() -> Result<()> {
    let attach =
        |words: &[&str]| hopscope(&[&["splice", "attach", ANYWAY, "-d", "1"], words].concat());
    for (words, said) in [
        (&["-p", "4194304"] as &[_], &["4194304"] as &[_]),
        (&["--cgroup", "/hopscope-none"], &["/hopscope-none"]),
        (&["--cgroup", "/proc"], &["/proc", "cgroup2"]),
    ] {
        attach(words)?
            .expect_refusal(said)
            .with_context(|| format!("{words:?}"))?;
    }
    for (words, said) in [
        (&["attach", "--port", "0", "-p", "1"] as &[_], "--port"),
        (&["attach", "--port", "65536", "-p", "1"], "65536"),
        (&["attach"], "--cgroup"),
        (&["run"], "COMMAND"),
        (&["run", "--limit", "x", "--", "true"], "--limit"),
        (&["run", "--limit", "1", "--", "true"], "at least 4K"),
        (
            &["run", "--connections", "0", "--", "true"],
            "--connections",
        ),
    ] {
        let out = hopscope(&[&["splice"], words].concat())?.expect_code(2)?;
        ensure!(out.stderr.contains(said), "{words:?}: {}", out.stderr);
    }
    let ports: Vec<String> = (1..=65).map(|port| format!("--port={port}")).collect();
    let mut words = vec!["-p", "1"];
    words.extend(ports.iter().map(String::as_str));
    attach(&words)?.expect_refusal(&["65 ports", "64"])?;
    hopscope(&["splice", "detach", "--of", "1"])?.expect_refusal(&["process 1"])?;
    hopscope(&["splice", "stat", "--of", "1"])?.expect_refusal(&["process 1"])?;
    // With a command its code is ours, and 125 says that hopscope failed.
    let out = hopscope(&["splice", "run", ANYWAY, "--", "/hopscope-none"])?;
    own_failure(out, &["/hopscope-none", "no such program"])?;
    let done = hopscope(&["-q", "splice", "run", ANYWAY, "--", "sh", "-c", "exit 37"])?;
    done.expect_code(37)?;
    Ok(())
}

fn own_failure(out: Output, words: &[&str]) -> Result<()> {
    ensure!(out.code == Some(125), "{out:?}");
    let as_refusal = Output {
        code: Some(2),
        ..out
    };
    as_refusal.expect_refusal(words)
}

/// Root that may not load programs, root that sees no cgroup2 (as `ip netns exec` has it) and is none the worse, and
/// somebody who is not root.
pub(super) fn unprivileged() -> Result<()> {
    let attach = ["splice", "attach", ANYWAY, "-d", "1", "-p", "1"];
    let none = "--bounding-set=-bpf,-perfmon,-sys_admin,-net_admin";
    let out = command(
        Command::new("setpriv")
            .args(["--inh-caps=-all", none])
            .arg(hopscope_bin())
            .args(attach),
    )?;
    out.expect_refusal(&["not allowed", "CAP_BPF"])?;
    // The group's path is its own, and the command has nothing of it.
    let script = "for at in $(awk '$3 == \"cgroup2\" { print $2 }' /proc/self/mounts); do umount -l $at; done; \
        exec \"$BIN\" splice attach --yes -d 1 -p 1";
    let out = command(
        Command::new("unshare")
            .args(["-m", "sh", "-c", script])
            .env("BIN", hopscope_bin()),
    )?;
    out.expect_code(0)?;
    // The binary may lie where only root can look; a copy of it does not.
    let place = std::env::temp_dir().join(format!("hopscope-splice-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let copy = place.join("hopscope");
    std::fs::copy(hopscope_bin(), &copy)?;
    let out = command(
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy)
            .args(attach),
    );
    std::fs::remove_dir_all(&place)?;
    out?.expect_refusal(&["ermission denied"])
}

/// Where FIONREAD is wrong for bytes that came by TCP, programs that believe it are left out.
pub(super) fn readers() -> Result<()> {
    let check = hopscope(&["check", "splice", "--json"])?.expect_code(0)?;
    let line = check
        .stdout
        .lines()
        .find(|line| line.contains("\"fionread-tcp\""));
    let is_broken = line.context("no such trial")?.contains("\"broken\"");
    for program in ["nginx", "java"] {
        let out = hopscope(&["-q", "splice", "run", ANYWAY, "--", program, "-version"])?;
        match is_broken {
            true => own_failure(out, &[program, "FIONREAD", "check splice"])?,
            false => ensure!(out.code != Some(125), "{out:?}"),
        }
        let allowed = [
            "-q", "splice", "run", ANYWAY, "--allow", program, "--", program, "-h",
        ];
        ensure!(hopscope(&allowed)?.code != Some(125), "{program}");
    }
    Ok(())
}

/// Filters of others are asked about: those of a `hopscope slice` are such.
pub(super) fn policies() -> Result<()> {
    let ready = dir().join("ready");
    let mut slice = Command::new(hopscope_bin());
    slice
        .args(["-q", "slice", "--no-calibration", "--json", "--ready-file"])
        .arg(&ready)
        .stdout(std::process::Stdio::null());
    let _slice = Target::spawn_with_ready_file(&mut slice, &ready)?;
    let out = hopscope(&["-q", "splice", "run", "--", "true"])?;
    own_failure(out, &["BPF programs of others", "packets", "--yes"])?;
    hopscope(&["-q", "splice", "run", ANYWAY, "--", "true"])?.expect_code(0)?;
    Ok(())
}

/// Among others such a program is left out, and works: its connections are plain TCP, and counted.
pub(super) fn reader_inside() -> Result<()> {
    let check = hopscope(&["check", "splice", "--json"])?.expect_code(0)?;
    let broken = |line: &str| line.contains("\"fionread-tcp\"") && line.contains("\"broken\"");
    let must_refuse = check.stdout.lines().any(broken);
    let port = std::net::TcpListener::bind("127.0.0.1:0")?
        .local_addr()?
        .port();
    let config = format!(
        "pid {dir}/pid; error_log {dir}/errors; user root; events {{}}\n\
         http {{ access_log off; server {{ listen 127.0.0.1:{port}; root {dir}; }} }}\n",
        dir = text(dir())?
    );
    std::fs::write(dir().join("nginx.conf"), config)?;
    let script = r#"
head -c 3000000 /dev/urandom > "$DIR/page"
nginx -e "$DIR/errors" -c "$DIR/nginx.conf" || exit 1
python3 -c "
import sys, urllib.request
for n in range(20):
    got = urllib.request.urlopen('http://127.0.0.1:$PORT/page').read()
    if got != open('$DIR/page', 'rb').read():
        sys.exit('%d: %d bytes' % (n, len(got)))
"; code=$?
nginx -e "$DIR/errors" -c "$DIR/nginx.conf" -s stop
exit $code
"#;
    let environment = [("DIR", text(dir())?), ("PORT", &port.to_string())];
    let done = splice(&[], script, &environment)?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    match must_refuse {
        true => ensure!(
            done.count("plain_refused")? == 20 && done.count("ends_joined")? == 0,
            "{}",
            done.summary
        ),
        false => ensure!(done.count("connections")? == 20, "{}", done.summary),
    }
    Ok(())
}
