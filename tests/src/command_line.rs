//! The manners of the command line itself.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, compile, hopscope, hopscope_bin};
use hopscope_tests::{repository, scratch};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    suite.case("command_line::help_starts_with_examples", &[], help);
    suite.case("command_line::usage_errors_are_2", &[], usage);
    suite.case("command_line::ignored_options_are_refused", &[], ignored);
    suite.case("command_line::broken_pipe_is_quiet", &[], broken_pipe);
    suite.case("command_line::exclude", &[Requirement::Gcc], exclude);
    suite.case(
        "command_line::names_do_not_steer_the_terminal",
        &[Requirement::Gcc],
        names,
    );
    suite.case("check::every_line_is_a_capability", &[], check_json);
    suite.case("check::a_low_limit_is_seen", &[], check_limit);
    suite.case(
        "check::an_ordinary_user_lacks_privileges",
        &[Requirement::Root],
        check_as_nobody,
    );
    suite.case(
        "check::record_cannot_do_without_ptrace",
        &[Requirement::Root, Requirement::Python3],
        check_without_ptrace,
    );
}

fn help() -> Result<()> {
    let short = hopscope(&["-h"])?.expect_code(0)?;
    ensure!(short.stdout.starts_with("EXAMPLES:"), "{}", short.stdout);
    let long = hopscope(&["--help"])?.expect_code(0)?;
    ensure!(
        long.stdout.len() > short.stdout.len(),
        "--help says no more"
    );
    Ok(())
}

fn usage() -> Result<()> {
    for words in [
        &["bogus"][..],
        &["check", "--bogus"],
        &[],
        &["-v", "-q", "check"],
    ] {
        let out = hopscope(words)?.expect_code(2)?;
        ensure!(out.stdout.is_empty(), "{words:?} wrote to stdout");
        ensure!(!out.stderr.is_empty(), "{words:?} gave no reason");
    }
    Ok(())
}

/// In one line, whatever the recording holds.
fn ignored() -> Result<()> {
    let golden = |name: &str| {
        let path = repository().join("measure/trace/tests/golden").join(name);
        path.display().to_string()
    };
    let (calls, slices) = (golden("v1.hop"), golden("v1.3-slices.hop"));
    let report: [(&str, &[&str], &str); 11] = [
        (&calls, &["-n", "3"], "-n goes with"),
        (&calls, &["--by", "thread", "-n", "3"], "-n goes with"),
        (&calls, &["--events", "-n", "3"], "-n goes with"),
        (&calls, &["--root", "loop"], "--root goes with"),
        (
            &calls,
            &["--by", "tree", "--packet-id", "x"],
            "--packet-id goes with",
        ),
        (
            &calls,
            &["--by", "run", "--packet-id", "x"],
            "--packet-id goes with",
        ),
        (&calls, &["--between", "a,b"], "--between goes with"),
        (&calls, &["--by", "run", "--sort", "self"], "--sort orders"),
        (&calls, &["--depth", "3"], "--by tree"),
        (&slices, &["--sort", "self"], "--sort asks for calls"),
        (&slices, &["-n", "3"], "-n goes with --by packet"),
    ];
    for (file, words, why) in report {
        let out = hopscope(&[&["report", file], words].concat())?;
        out.expect_refusal(&[why])
            .with_context(|| format!("{words:?}"))?;
    }
    let to = scratch().join("page.html").display().to_string();
    for words in [["--sort", "self"], ["--by", "tree"]] {
        let out = hopscope(&[&["report", &calls, "--html", &to], &words[..]].concat())?;
        out.expect_refusal(&[words[0], "--html"])?;
    }
    let export: [(&[&str], &str); 6] = [
        (&["csv", "--interval", "2s"], "--interval goes with"),
        (
            &["csv", "--what", "calls", "--root", "x"],
            "--root goes with",
        ),
        (&["folded", "--root", "x"], "--root goes with"),
        (&["hdr", "--packet-id", "x"], "--packet-id goes with"),
        (&["folded", "--packets", "x.hop"], "--packets goes with"),
        (&["csv", "--mode", "0644"], "--output"),
    ];
    for (words, why) in export {
        let out = hopscope(&[&["export", &calls, "--format"], words].concat())?.expect_code(2)?;
        ensure!(
            out.stdout.is_empty() && out.stderr.contains(why),
            "{words:?}: {out:?}"
        );
    }
    let pid = std::process::id().to_string();
    for words in [
        &["-c", "0"][..],
        &["--slice-regions", "tx"],
        &["--keep", "2"],
    ] {
        let all = [&["record", "-p", &pid, "-f", "main"], words].concat();
        let out = hopscope(&all)?.expect_code(2)?;
        ensure!(
            out.stdout.is_empty() && !out.stderr.is_empty(),
            "{words:?}: {out:?}"
        );
    }
    Ok(())
}

fn exclude() -> Result<()> {
    let program = compile("gcc", &["steady.c"], &["-O0"])?;
    let target = Target::spawn(&mut Command::new(&program))?;
    let pid = target.pid().to_string();
    for (words, all) in [
        (["functions", "-p", &pid, "-f", "steady*!*"], "--json"),
        (["record", "-p", &pid, "-f", "steady*!*"], "--dry-run"),
    ] {
        let whole = hopscope(&[&words[..], &[all]].concat())?.expect_code(0)?;
        // A name that no path can have: a clone below a folder called main did.
        let mix = |line: &&str| line.contains("steady_mix");
        let mixes = whole.stdout.lines().filter(mix).count();
        ensure!(mixes > 0, "{}", whole.stdout);
        let without =
            hopscope(&[&words[..], &["-x", "*steady_mix*", all]].concat())?.expect_code(0)?;
        ensure!(
            without.stdout.lines().filter(mix).count() == 0,
            "{}",
            without.stdout
        );
        let said = format!("{}{}", without.stdout, without.stderr);
        ensure!(said.contains("left out by -x"), "{said}");
        ensure!(
            without.stdout.lines().count() + mixes == whole.stdout.lines().count(),
            "more than that is left out: {}",
            without.stdout
        );
        let nothing = hopscope(&[&words[..], &["-x", "*", all]].concat())?.expect_code(2)?;
        ensure!(
            nothing.stderr.contains("excludes all"),
            "{}",
            nothing.stderr
        );
    }
    Ok(())
}

/// A file may have any name.
fn names() -> Result<()> {
    let evil = scratch().join("ev\u{1b}[31mil");
    std::fs::copy(compile("gcc", &["steady.c"], &["-O0"])?, &evil)?;
    let path = evil.to_str().unwrap_or_default();
    for words in [
        &["functions", "-b", path, "--summary"][..],
        &["functions", "-b", path],
    ] {
        let out = hopscope(words)?;
        let said = format!("{}{}", out.stdout, out.stderr);
        ensure!(said.contains("[31mil"), "{words:?}: {said}");
        ensure!(!said.contains('\u{1b}'), "{words:?}: {said:?}");
    }
    Ok(())
}

fn broken_pipe() -> Result<()> {
    let mut child = Command::new(hopscope_bin())
        .args(["check", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Closed before the first line: the trials take longer than this.
    drop(child.stdout.take());
    let out = child.wait_with_output()?;
    ensure!(
        out.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    ensure!(out.status.code() == Some(0), "{}", out.status);
    Ok(())
}

fn capabilities(command: &mut Command) -> Result<(Vec<serde_json::Value>, Option<i32>)> {
    let out = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let mut lines = Vec::new();
    for line in BufReader::new(&out.stdout[..]).lines() {
        lines.push(serde_json::from_str(&line?)?);
    }
    Ok((lines, out.status.code()))
}

fn state<'a>(lines: &'a [serde_json::Value], name: &str) -> &'a str {
    lines
        .iter()
        .find(|line| line["name"] == name)
        .and_then(|line| line["state"].as_str())
        .unwrap_or("not listed")
}

fn check_json() -> Result<()> {
    let (lines, code) = capabilities(Command::new(hopscope_bin()).args(["check", "--json"]))?;
    for line in &lines {
        ensure!(
            line["type"] == "capability" && line["schema"] == 1,
            "{line}"
        );
        for field in ["name", "found", "purpose", "determined_by"] {
            ensure!(
                !line[field].as_str().unwrap_or("").is_empty(),
                "{field}: {line}"
            );
        }
        let ok = line["state"] == "ok";
        ensure!(ok || line["remedy"].is_string(), "no remedy: {line}");
    }
    for name in [
        "ptrace",
        "yama",
        "fsgsbase",
        "invariant-tsc",
        "pmu",
        "rdpmc",
        "btf",
        "bpf-tracepoint",
        "bpf-raw-tracepoint",
        "bpf-fentry",
        "bpf-fexit",
        "bpf-kprobe",
        "bpf-cgroup",
        "bpf-sockops",
        "huge-pages",
        "cgroup2",
        "memfd-exec",
        "proc-mem-write",
        "shadow-stack",
        "no-lockdown",
        "no-seccomp",
        "limit-nofile",
        "af-xdp",
        "tap",
        "veth",
        "netns",
    ] {
        ensure!(lines.iter().any(|line| line["name"] == name), "no {name}");
    }
    let lacking = lines
        .iter()
        .any(|line| line["needed_by_record"] == true && line["state"] != "ok");
    ensure!(code == Some(i32::from(lacking)), "exit code {code:?}");
    Ok(())
}

fn check_limit() -> Result<()> {
    let script = format!(
        "ulimit -n 100; exec {} check --json",
        hopscope_bin().display()
    );
    let (lines, _) = capabilities(Command::new("sh").args(["-c", &script]))?;
    ensure!(state(&lines, "limit-nofile") == "missing", "{lines:?}");
    Ok(())
}

/// The binary may lie where only root can look; a copy of it does not.
fn check_as_nobody() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("hopscope-check-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let copy = dir.join("hopscope");
    std::fs::copy(hopscope_bin(), &copy)?;
    let seen = capabilities(
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy)
            .args(["check", "--json"]),
    );
    std::fs::remove_dir_all(&dir)?;
    let (lines, _) = seen?;
    let unprivileged = [
        "cap-sys-ptrace",
        "cap-sys-admin",
        "cap-bpf",
        "bpf-tracepoint",
        "bpf-cgroup",
        "netns",
    ];
    for name in unprivileged {
        ensure!(
            state(&lines, name) == "missing",
            "{name} is {}",
            state(&lines, name)
        );
    }
    ensure!(
        state(&lines, "ptrace") == "ok",
        "own children can be traced"
    );
    Ok(())
}

/// A seccomp filter that refuses ptrace, as containers have it.
fn check_without_ptrace() -> Result<()> {
    let mut command = Command::new("python3");
    command
        .arg(hopscope_tests::programs().join("without_ptrace.py"))
        .arg(hopscope_bin())
        .args(["check", "--json"]);
    let (lines, code) = capabilities(&mut command)?;
    ensure!(
        state(&lines, "ptrace") == "missing",
        "ptrace: {}",
        state(&lines, "ptrace")
    );
    ensure!(
        state(&lines, "no-seccomp") == "missing",
        "the filter is not seen"
    );
    ensure!(code == Some(1), "exit code {code:?}");
    Ok(())
}
