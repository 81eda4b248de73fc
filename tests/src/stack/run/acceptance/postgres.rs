//! PostgreSQL at either end: a process for each connection, which its parent accepts and closes.
use super::super::running::{kernel_has_none, until};
use super::side::{End, Mode, Program, Side};
use crate::stack::cable::KERNEL;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::{Output, run};
use hopscope_tests::requirement::postgres;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Postgres, Root};
    for (mode, does, end) in [
        (Mode::Pipeline, "serves_with", End::Stack),
        (Mode::Inline, "connects_to", End::Kernel),
        (Mode::Pipeline, "connects_to", End::Kernel),
    ] {
        let name = format!("{}_{does}_postgres", mode.prefix());
        let case = suite.case(name, &[Root, Netns, Postgres], move || carries(mode, end));
        case.in_turn().soak = (mode, end) == (Mode::Pipeline, End::Kernel);
    }
}

struct RemovedAtEnd<'a>(&'a Path);

impl Drop for RemovedAtEnd<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

fn tool(name: &str) -> Result<String> {
    let bin = postgres().context("no postgres")?;
    Ok(bin.join(name).display().to_string())
}

/// The program does not run as root.
fn as_owner(of: &Command) -> Command {
    let mut command = Command::new("runuser");
    command
        .args(["-u", "postgres", "--"])
        .arg(of.get_program())
        .args(of.get_args())
        .envs(
            of.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn server(side: &Side, end: End, data: &Path) -> Result<Program> {
    let at = data.to_str().context("path")?;
    let mut initialize = Command::new(tool("initdb")?);
    initialize.args(["-D", at, "-A", "trust", "--no-sync"]);
    run(&mut as_owner(&initialize))?.expect_code(0)?;
    let rules = format!("host all all {KERNEL}/24 trust\n");
    std::fs::write(data.join("pg_hba.conf"), rules)?;
    if let Some(socket) = side.socket() {
        std::fs::set_permissions(socket, PermissionsExt::from_mode(0o666))?;
    }
    let [addresses, sockets] = [
        format!("listen_addresses={}", end.address()),
        format!("unix_socket_directories={at}"),
    ];
    let more = ["-c", &addresses, "-c", &sockets, "-c", "fsync=off"];
    let tool = tool("postgres")?;
    let program = [&[&tool, "-D", at], &more[..]].concat();
    let mut command = as_owner(&side.command_at(end, &program));
    side.spawns_at(end, &mut command, Target::spawn_now)
}

/// psql and pgbench at the other end.
fn carries(mode: Mode, end: End) -> Result<()> {
    let side = Side::new(mode)?;
    let data = std::env::temp_dir().join(format!("hopscope-{}.postgres", std::process::id()));
    let _gone = RemovedAtEnd(&data);
    let server = server(&side, end, &data)?;
    let client = |name: &str, words: &[&str]| -> Result<Output> {
        let tool = tool(name)?;
        let common = [&tool, "-h", end.address(), "-U", "postgres"];
        let words = [&common, words, &["postgres"]].concat();
        run(&mut side.command_at(end.other(), &words))
    };
    let done = |name: &str, words: &[&str]| -> Result<Output> {
        let out = client(name, words)?.expect_code(0)?;
        if end == End::Kernel {
            side.nothing_is_left(&out.stderr)?;
        }
        Ok(out)
    };
    let question = ["-Atc", "select 'it ' || 'answers'"];
    until("it answers", || {
        Ok(client("psql", &question)?.stdout.trim() == "it answers")
    })?;
    if end == End::Stack {
        kernel_has_none(5432)?;
    }
    done("pgbench", &["-i", "-q"])?;
    let transactions = counts().pick("50", "5000");
    // A connection for all, and one for each.
    for words in [
        ["-c", "8", "-j", "2", "-t", transactions].as_slice(),
        &["-C", "-c", "4", "-t", counts().pick("10", "500")],
    ] {
        let said = done("pgbench", words)?.stdout;
        ensure!(said.contains("failed transactions: 0 "), "{said}");
    }
    let long = done("psql", &["-Atc", "select repeat('x', 3000000)"])?.stdout;
    ensure!(long.len() == 3_000_001, "{}", long.len());
    let pid = std::fs::read_to_string(data.join("postmaster.pid"))?;
    let pid = pid.lines().next().context("no number")?.parse()?;
    kill(Pid::from_raw(pid), Signal::SIGINT)?;
    side.ended(server, None)?;
    side.ends(500)
}
