//! sshd and ssh at either end: the server forks and executes itself for each connection, shuts its parts into a sandbox, and hands
//! its end on to shells.
use super::super::running::kernel_has_none;
use super::super::tools::body;
use super::side::{End, Mode, Program, Side};
use crate::stack::cable::files;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Sshd};
    for (mode, name, end) in [
        (Mode::Pipeline, "serves_with_sshd", End::Stack),
        (Mode::Inline, "connects_with_ssh", End::Kernel),
        (Mode::Pipeline, "connects_with_ssh", End::Kernel),
    ] {
        let name = format!("{}_{name}", mode.prefix());
        let case = suite.case(name, &[Netns, Sshd], move || shells(mode, end));
        case.soak = (mode, end) == (Mode::Inline, End::Kernel);
    }
}

fn at(name: &str) -> String {
    files().join(name).display().to_string()
}

fn server(side: &Side, end: End) -> Result<Program> {
    for name in ["host", "user"] {
        let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
        run(Command::new("ssh-keygen").args(words).arg(at(name)))?.expect_code(0)?;
    }
    std::fs::create_dir_all("/run/sshd")?;
    std::fs::set_permissions("/run/sshd", PermissionsExt::from_mode(0o755))?;
    let options = [
        format!("ListenAddress={}:22", end.address()),
        format!("HostKey={}", at("host")),
        format!("AuthorizedKeysFile={}", at("user.pub")),
        format!("PidFile={}", at("pid")),
        "StrictModes=no".into(),
        "UsePAM=no".into(),
    ];
    let mut program = vec!["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null"];
    program.extend(options.iter().flat_map(|option| ["-o", option.as_str()]));
    side.starts_at(end, &program, &files().join("pid"))
}

fn shells(mode: Mode, end: End) -> Result<()> {
    let side = Side::new(mode)?;
    let server = server(&side, end)?;
    if end == End::Stack {
        kernel_has_none(22)?;
    }
    // Its input and its output are files.
    let shell = |input: &str, command: &str| -> Result<Vec<u8>> {
        let to = format!("root@{}", end.address());
        let user = at("user");
        let options = "-F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null";
        let words = options.split(' ').chain(["-i", &user, &to, command]);
        let program: Vec<&str> = std::iter::once("/usr/bin/ssh").chain(words).collect();
        let mut ssh = side.command_at(end.other(), &program);
        let got = files().join("got");
        ssh.stdin(File::open(input)?).stdout(File::create(&got)?);
        let client = side.spawns_at(end.other(), &mut ssh, Target::spawn_now)?;
        side.ended(client, None)?;
        Ok(std::fs::read(got)?)
    };
    let peers = String::from_utf8(shell("/dev/null", "echo $SSH_CONNECTION")?)?;
    ensure!(
        peers.starts_with(end.other().address())
            && peers.contains(&format!("{} 22", end.address())),
        "{peers}"
    );
    let bytes = body(&files(), counts().pick(3_000_000, 50_000_000))?;
    ensure!(
        shell(&at("body"), "cat")? == bytes,
        "what came back differs"
    );
    server.target.signal(Signal::SIGTERM)?;
    // Of a signal, when it has closed its listener.
    server.target.wait()?;
    side.ends(20)
}
