//! The guardian: a small parent process of the recorder. When the recorder is killed, it puts the
//! targets back and saves what their rings still hold.
use super::{RecordArgs, targets};
use crate::detach;
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

const MARK: &str = "HOPSCOPE_GUARDED_BY";
/// What a Rust program ends with after a panic.
const PANICKED: i32 = 101;
/// Cursor on, and back from the alternate screen (xterm control sequences, DECTCEM and 1049).
const LEAVE_SCREEN: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Whether this process is the recorder below a guardian. It asks to be told when that one dies.
pub fn is_guarded() -> bool {
    let parent = nix::unistd::getppid().to_string();
    if std::env::var(MARK).is_ok_and(|pid| pid == parent) {
        if let Err(e) = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM) {
            log::warn!("cannot follow the guardian process: {e}");
        }
        return true;
    }
    false
}

/// What becomes of the records that a killed recorder leaves in the rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Salvage {
    /// They go to a file beside the one that was asked for.
    BesideOutput,
    /// Nobody asked for a file.
    Nothing,
}

/// Starts the recorder as a child and waits for it. Leaves the terminal as it found it, also when
/// the recorder cannot.
pub fn run(args: &RecordArgs, salvage: Salvage) -> anyhow::Result<ExitCode> {
    let mut followed = vec![SIGINT, SIGTERM, SIGHUP];
    if super::choice::wants_signal(args) {
        followed.push(SIGUSR1);
    }
    let mut signals = Signals::new(followed).context("taking over signals")?;
    let terminal = tcgetattr(std::io::stdin()).ok();
    let exe = std::env::current_exe().context("finding this program's own file")?;
    let mut child = Command::new(exe)
        .args(std::env::args_os().skip(1))
        .env(MARK, std::process::id().to_string())
        .spawn()
        .context("starting the recorder")?;
    let pid = Pid::from_raw(child.id() as i32);
    let handle = signals.handle();
    // A terminal signals both processes; a script that knows only this pid signals one.
    let forwarder = std::thread::spawn(move || {
        for signal in signals.forever() {
            let signal = match signal {
                SIGINT => Signal::SIGINT,
                SIGHUP => Signal::SIGHUP,
                SIGUSR1 => Signal::SIGUSR1,
                _ => Signal::SIGTERM,
            };
            if kill(pid, signal).is_err() {
                break;
            }
        }
    });
    let status = child.wait().context("waiting for the recorder")?;
    handle.close();
    let _ = forwarder.join();
    let why = match (status.code(), status.signal()) {
        (Some(PANICKED), _) => "failed by an error of its own".to_owned(),
        (Some(code), _) => return Ok(ExitCode::from(code as u8)),
        (None, signal) => format!("was killed (signal {})", signal.unwrap_or(0)),
    };
    if let Some(terminal) = terminal {
        // It may be in the state of a full screen, and the one who would put it back is gone.
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &terminal);
        if salvage == Salvage::Nothing && std::io::stdout().is_terminal() {
            let _ = std::io::stdout().write_all(LEAVE_SCREEN);
            let _ = std::io::stdout().flush();
        }
    }
    // When stderr is gone too there is nobody left to tell, and still something to restore.
    let _ = writeln!(
        std::io::stderr(),
        "hopscope: the recorder {why}; restoring its targets"
    );
    if args.flight.is_some() {
        let _ = writeln!(
            std::io::stderr(),
            "hopscope: what it held in memory is gone; files that are saved stay"
        );
    }
    let file = args.output.with_extension("salvaged.hop");
    let file = (salvage == Salvage::BesideOutput).then_some(file);
    // Those that are gone meanwhile need nothing.
    let targets = targets::pids(args).unwrap_or_default();
    detach::after_recorder(pid.as_raw(), &targets, file.as_deref())?;
    Ok(ExitCode::from(2))
}
