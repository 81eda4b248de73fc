//! Processes that cannot be measured.
use super::steady::Steady;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::mapped::mapped;
use hopscope_tests::{Requirement, Suite, Target, hopscope, hopscope_bin, scratch};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Ia32, Root};
    suite.case("bad_input::no_such_process", &[], no_such_process);
    suite.case("bad_input::no_such_comm", &[], no_such_comm);
    suite.case("bad_input::kernel_thread", &[Root], kernel_thread);
    suite.case("bad_input::zombie", &[], zombie);
    suite.case("bad_input::nothing_matches", &[Gcc], nothing_matches);
    suite.case("bad_input::broken_regex", &[Gcc], broken_regex);
    suite.case("bad_input::already_traced", &[Gcc], already_traced);
    suite.case("bad_input::second_recorder", &[Gcc], second_recorder);
    suite.case("bad_input::two_recorders_at_once", &[Gcc], two_at_once);
    suite.case("bad_input::no_permission", &[Gcc, Root], no_permission);
    suite.case("bad_input::process_of_32_bits", &[Ia32], process_of_32_bits);
    suite.case(
        "bad_input::no_file_descriptor_left_in_the_target",
        &[Gcc],
        || limited("files"),
    );
    suite.case("bad_input::no_memory_left_in_the_target", &[Gcc], || {
        limited("memory")
    });
    suite.case("bad_input::command_not_found", &[], command_not_found);
    suite.case("bad_input::command_of_32_bits", &[Ia32], command_of_32_bits);
}

fn no_such_process() -> Result<()> {
    // Above the largest pid there can be (PID_MAX_LIMIT, 2^22).
    hopscope(&["record", "-p", "4194999", "-f", "*"])?.expect_refusal(&["4194999"])
}

fn no_such_comm() -> Result<()> {
    hopscope(&["record", "--comm", "no-such-comm", "-f", "*"])?.expect_refusal(&["no-such-comm"])
}

fn kernel_thread() -> Result<()> {
    let kthreadd = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if kthreadd.trim() != "kthreadd" {
        // In a pid namespace there is none to aim at; the refusal of pid 2 is then another one.
        return hopscope(&["record", "-p", "2", "-f", "*"])?.expect_refusal(&["2"]);
    }
    hopscope(&["record", "-p", "2", "-f", "*"])?.expect_refusal(&["kernel thread"])
}

fn zombie() -> Result<()> {
    let mut child = Command::new("true").spawn()?;
    let pid = child.id().to_string();
    // Ended, and not waited for.
    let stat = format!("/proc/{pid}/stat");
    while !std::fs::read_to_string(&stat)?.contains(") Z ") {
        std::thread::yield_now();
    }
    let refused = hopscope(&["record", "-p", &pid, "-f", "*"])?.expect_refusal(&[&pid]);
    child.wait()?;
    refused
}

fn nothing_matches() -> Result<()> {
    let steady = Steady::start(&[])?;
    steady
        .record(&["stedy_mix"])?
        .expect_refusal(&["stedy_mix", "steady_mix"])?;
    steady.unharmed()
}

fn broken_regex() -> Result<()> {
    let steady = Steady::start(&[])?;
    steady
        .record(&["/steady_(/"])?
        .expect_refusal(&["steady_("])?;
    steady.unharmed()
}

fn already_traced() -> Result<()> {
    let steady = Steady::start(&[])?;
    let pid = Pid::from_raw(steady.target.pid());
    ptrace::seize(pid, ptrace::Options::empty())?;
    let tracer = std::process::id().to_string();
    steady
        .record(&["steady_mix"])?
        .expect_refusal(&["traced", &tracer])?;
    // A seized process is released from a stop only.
    ptrace::interrupt(pid)?;
    nix::sys::wait::waitpid(pid, None)?;
    ptrace::detach(pid, None)?;
    steady.unharmed()
}

fn second_recorder() -> Result<()> {
    let steady = Steady::start(&[])?;
    let dir = scratch();
    let ready = dir.join("ready");
    let mut first = Command::new(hopscope_bin());
    first
        .args([
            "record",
            "--no-calibration",
            "-f",
            "steady_mix",
            "-p",
            &steady.pid(),
            "-o",
        ])
        .arg(dir.join("first.hop"))
        .arg("--ready-file")
        .arg(&ready);
    let mut first = Target::spawn_with_ready_file(&mut first, &ready)?;
    // What the user started is the guardian; the recorder is its child. Either pid will do.
    let pid = first.pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let refused = steady.record_to(&dir.join("second.hop"), &["steady_step"])?;
    let said = |pid: &str| refused.stderr.contains(&format!("pid {pid}"));
    ensure!(
        said(&pid.to_string()) || children.split_whitespace().any(said),
        "neither {pid} nor {children} in: {}",
        refused.stderr
    );
    refused.expect_refusal(&[&steady.pid()])?;
    first.signal(Signal::SIGINT)?;
    let ended = first.wait_at_most(Duration::from_secs(60))?;
    ensure!(ended.success(), "the first recorder: {ended}");
    steady.unharmed()
}

/// Of two that come at the same time one is refused, by the other's number, and the other is not disturbed.
fn two_at_once() -> Result<()> {
    /// As measure/process/src/fault.rs has them: each takes 300 ms where the variable names it.
    const POINTS: [&str; 2] = ["2", "17"];
    let steady = Steady::start(&[])?;
    let dir = scratch();
    for point in POINTS {
        let record = |name: &str| {
            let mut record = Command::new(hopscope_bin());
            record
                .args(["record", "--no-calibration", "--max-overhead", "1e9"])
                .args(["-f", "steady_mix", "-d", "60s", "-p", &steady.pid(), "-o"])
                .arg(dir.join(name))
                .env("HOPSCOPE_DELAY_POINT", point)
                .stderr(Stdio::piped())
                .stdout(Stdio::null());
            record.spawn()
        };
        let both = [record("one.hop")?, record("other.hop")?];
        let pids = both.each_ref().map(|recorder| recorder.id() as i32);
        let (to, ended) = std::sync::mpsc::channel();
        for recorder in both {
            let to = to.clone();
            std::thread::spawn(move || {
                to.send((recorder.id() as i32, recorder.wait_with_output()))
            });
        }
        let (mut recorded, mut refused) = (0, Vec::new());
        for _ in pids {
            let (ended_pid, out) = ended.recv()?;
            let out = out?;
            match out.status.success() {
                true => recorded += 1,
                false => refused.push(String::from_utf8_lossy(&out.stderr).into_owned()),
            }
            // The other goes on until then, however late this one came.
            let other = pids.iter().find(|pid| **pid != ended_pid);
            if let Some(other) = other.filter(|_| recorded + refused.len() == 1) {
                kill(Pid::from_raw(*other), Signal::SIGINT)?;
            }
        }
        ensure!(
            recorded == 1,
            "point {point}: {recorded} recorded; {refused:?}"
        );
        let by_its_number =
            refused[0].contains("being recorded") && refused[0].contains("by hopscope, pid ");
        ensure!(by_its_number, "point {point}: {}", refused[0]);
    }
    steady.unharmed()
}

fn no_permission() -> Result<()> {
    let steady = Steady::start(&[])?;
    let dir = std::env::temp_dir().join(format!("hopscope-tests-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777))?;
    let copy = dir.join("hopscope");
    std::fs::copy(hopscope_bin(), &copy)?;
    let out = run(Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&copy)
        .args(["record", "-p", &steady.pid(), "-f", "steady_mix", "-o"])
        .arg(dir.join("out.hop")));
    std::fs::remove_dir_all(&dir)?;
    out?.expect_refusal(&[&steady.pid()])?;
    steady.unharmed()
}

/// It only waits for a signal.
fn program_of_32_bits() -> Result<PathBuf> {
    let path = scratch().join("elf32");
    std::fs::write(&path, hopscope_tests::requirement::elf32_pause())?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

fn command_of_32_bits() -> Result<()> {
    let path = program_of_32_bits()?;
    command_refused(&path, &["64-bit", "elf32"])
}

/// The last line is hopscope's, and no file is left.
fn command_refused(command: &Path, reasons: &[&str]) -> Result<()> {
    let output = command.with_extension("hop");
    let (command, name) = (command.to_str().context("path")?, output.to_str());
    let words = [
        "record",
        "-f",
        "*",
        "-o",
        name.context("path")?,
        "--",
        command,
    ];
    let out = hopscope(&words)?.expect_code(125)?;
    let line = out.stderr.lines().last().context("nothing said")?;
    for reason in reasons {
        ensure!(line.contains(reason), "no `{reason}` in: {line}");
    }
    ensure!(line.starts_with("hopscope: ") && !output.exists(), "{line}");
    Ok(())
}

fn process_of_32_bits() -> Result<()> {
    let path = program_of_32_bits()?;
    let target = Target::spawn_now(&mut Command::new(&path))?;
    let pid = target.pid().to_string();
    hopscope(&["record", "-p", &pid, "-f", "*"])?.expect_refusal(&["32"])?;
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    ensure!(
        state.contains(") S "),
        "the target no longer sleeps: {state}"
    );
    Ok(())
}

/// The target has nothing left that attaching would need: hopscope either does without or refuses.
fn limited(what: &str) -> Result<()> {
    let steady = Steady::start(&[what])?;
    let out = steady.record(&["steady_mix"])?;
    if out.code != Some(0) {
        out.expect_refusal(&[&steady.pid()])?;
    }
    let left = mapped(steady.pid().parse()?)?;
    ensure!(left.is_empty(), "left mapped: {left:?}");
    steady.unharmed()
}

fn command_not_found() -> Result<()> {
    let output = scratch().join("out.hop");
    let output = output.to_str().context("path")?;
    let words = ["record", "-f", "*", "-o", output, "--", "/no/such/command"];
    let out = hopscope(&words)?.expect_code(125)?;
    ensure!(out.stderr.contains("/no/such/command"), "{}", out.stderr);
    ensure!(out.stderr.lines().count() == 1, "{}", out.stderr);
    Ok(())
}
