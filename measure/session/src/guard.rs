//! The guardian: a small parent process of the recorder. When the recorder is killed, it puts the
//! targets back and saves what their rings still hold.
use crate::attach::{AttachRequest, targets};
use crate::error::{Context, Error, Result, in_one_line};
use crate::output::Writer;
use crate::signals::were_ignored_above;
use crate::{detach, output, record};
use hopscope_process::procfs::Status;
use hopscope_process::{environment, signals};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};
use nix::unistd::Pid;
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that says whose child a recorder is: of the guardian its pid, then the signals that were ignored there.
const GUARDED_BY: &str = "HOPSCOPE_GUARDED_BY";
/// Cursor on, and back from the alternate screen (xterm control sequences, DECTCEM and 1049).
const LEAVE_SCREEN: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Whether this process is the recorder below a guardian. It asks to be told when that one dies, and takes the mark out
/// of its environment, which is that of a command, too. Asked once, before there are other threads.
///
/// # Errors
/// Its guardian was killed before it could ask.
pub fn is_guarded() -> Result<bool> {
    let mark = std::env::var(GUARDED_BY).unwrap_or_default();
    let mut numbers = mark.split(',').map(str::parse);
    let Some(Ok(guardian)) = numbers.next() else {
        return Ok(false);
    };
    if nix::unistd::getppid().as_raw() != guardian {
        // Of one that lives the mark is somebody else's, left in an environment.
        let lives = Status::read(guardian, guardian).is_ok_and(|status| status.state() != 'Z');
        return if lives { Ok(false) } else { Err(gone()) };
    }
    were_ignored_above(numbers.flatten().collect());
    if let Err(e) = environment::remove(GUARDED_BY) {
        log::warn!("{GUARDED_BY} stays in the environment: {e}");
    }
    if let Err(e) = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM) {
        log::warn!("cannot follow the guardian process: {e}");
    }
    // It may have been killed before that.
    if nix::unistd::getppid().as_raw() != guardian {
        return Err(gone());
    }
    Ok(true)
}

fn gone() -> Error {
    Error::refused(format!(
        "the process that started this recorder was killed: nothing was attached to (if none did, unset {GUARDED_BY})"
    ))
}

/// What the recorder does. A panic ends it by SIGABRT: any exit code may be that of the command it measures.
pub fn recorder<T>(work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        // The panic has said where, and its memory may hold secrets of the targets: no core file.
        let _ = nix::sys::prctl::set_dumpable(false);
        std::process::abort()
    })
}

/// What the recorder was asked for, as far as its guardian must know.
pub struct Guarded<'a> {
    pub attach: &'a AttachRequest,
    /// What a killed recorder leaves in the rings goes to a file beside this one; `None`: nobody asked for a file.
    pub output: Option<&'a Path>,
    /// Files are saved at triggers only.
    pub is_flight: bool,
    /// SIGUSR1 is passed on.
    pub takes_signal: bool,
    /// The exit code where the recorder has none.
    pub failure: u8,
}

/// Who is above, and what was ignored there.
fn mark(ignored: &[i32]) -> String {
    let numbers = std::iter::once(std::process::id() as i32).chain(ignored.iter().copied());
    let numbers: Vec<String> = numbers.map(|n| n.to_string()).collect();
    numbers.join(",")
}

/// Starts the recorder as a child and waits for it. Leaves the terminal as it found it, also when
/// the recorder cannot. The exit code.
///
/// # Errors
/// The recorder cannot be started, or what it left cannot be looked at.
pub fn run(guarded: &Guarded<'_>) -> Result<u8> {
    let ignored = signals::ignored();
    let mut followed = vec![SIGINT, SIGTERM, SIGHUP];
    // nohup(1). SIGINT is taken all the same, as by tcpdump and perf: scripts send it to what they run in the background.
    followed.retain(|signal| *signal != SIGHUP || !ignored.contains(&SIGHUP));
    if guarded.takes_signal {
        followed.push(SIGUSR1);
    }
    let mut signals = Signals::new(followed).context("taking over signals")?;
    let terminal = tcgetattr(std::io::stdin()).ok();
    let exe = std::env::current_exe().context("finding this program's own file")?;
    environment::set(GUARDED_BY, mark(&ignored)).context("marking the environment")?;
    let mut child = Command::new(exe)
        .args(std::env::args_os().skip(1))
        .spawn()
        .context("starting the recorder")?;
    let pid = Pid::from_raw(child.id() as i32);
    let writer = Writer::of(pid.as_raw());
    let handle = signals.handle();
    // A terminal signals both processes; a script that knows only this pid signals one.
    let forwarder = std::thread::spawn(move || {
        for signal in signals.forever() {
            let signal = match signal {
                SIGINT => Signal::SIGINT,
                SIGHUP => Signal::SIGHUP,
                // Before it is caught it would end the recorder.
                SIGUSR1 if !catches(pid, SIGUSR1) => {
                    crate::status::say!(
                        "SIGUSR1 came before the recording began: nothing was saved for it"
                    );
                    continue;
                }
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
    // Those that are gone meanwhile need nothing.
    let targets = targets::pids(guarded.attach).unwrap_or_default();
    let why = match (status.code(), status.signal()) {
        // It restores them itself, except where it cannot.
        (Some(code), _) => {
            if detach::has_left(pid.as_raw(), &targets) {
                format!("ended (exit code {code}) and left its probes")
            } else {
                return Ok(code as u8);
            }
        }
        // A panic, no memory, an assertion of a library.
        (None, Some(SIGABRT)) => "failed by an error of its own".to_owned(),
        (None, signal) => format!("was killed (signal {})", signal.unwrap_or(0)),
    };
    if let Some(terminal) = terminal {
        // It may be in the state of a full screen, and the one who would put it back is gone.
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &terminal);
        if guarded.output.is_none() && std::io::stdout().is_terminal() {
            let _ = std::io::stdout().write_all(LEAVE_SCREEN);
            let _ = std::io::stdout().flush();
        }
    }
    // When stderr is gone too there is nobody left to tell, and still something to restore.
    let _ = writeln!(
        std::io::stderr(),
        "hopscope: the recorder {why}; restoring its targets"
    );
    if guarded.is_flight {
        let _ = writeln!(
            std::io::stderr(),
            "hopscope: records in memory are lost; saved files remain"
        );
    }
    let file = guarded
        .output
        .and_then(|output| begun(output, guarded.is_flight, writer));
    detach::after_recorder(pid.as_raw(), &targets, file.as_deref())?;
    Ok(guarded.failure)
}

/// Completes the file that the recorder had begun; where its last records go, if the output was a
/// file at all.
fn begun(output: &Path, is_flight: bool, recorder: Option<Writer>) -> Option<PathBuf> {
    let begun = recorder.map_or_else(Vec::new, |recorder| {
        let paths = if is_flight {
            record::begun(output, recorder)
        } else {
            vec![output.to_owned()]
        };
        let completed = |path: &PathBuf| output::complete(path, recorder);
        paths.iter().map(completed).collect()
    });
    for completed in begun {
        match completed {
            Ok(Some(path)) => {
                crate::status::say!("{} contains the records written until then", path.display());
            }
            Ok(None) => {}
            Err(e) => crate::status::say!("{}", in_one_line(&e)),
        }
    }
    let is_file = std::fs::metadata(output).map_or(true, |found| found.is_file());
    is_file.then(|| output.with_extension("salvaged.hop"))
}

/// proc_pid_status(5): `SigCgt` is a mask in hexadecimal, signal 1 its lowest bit.
fn catches(pid: Pid, signal: i32) -> bool {
    let status = Status::read(pid.as_raw(), pid.as_raw());
    let mask = status.ok().and_then(|status| {
        let mask = status.field("SigCgt")?;
        u64::from_str_radix(mask, 16).ok()
    });
    mask.is_none_or(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caught_signals_are_seen_from_outside() {
        let us = nix::unistd::getpid();
        assert!(!catches(us, SIGUSR1));
        let _signals = Signals::new([SIGUSR1]).expect("taken over");
        assert!(catches(us, SIGUSR1) && !catches(us, SIGUSR1 + 2));
    }
}
