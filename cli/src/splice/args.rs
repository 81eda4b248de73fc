//! What can be asked of the accelerator.
use crate::test_hooks;
use crate::units::{parse_size, parse_time};
use clap::Args;
use hopscope_splice::programs::{Options, Spoil};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which connections, and how much they may hold.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Accelerate connections to this server port (repeatable) [default: all]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// Accelerated connections at once; further ones stay on TCP and are counted
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub connections: u32,
    /// Unread bytes per direction, at most; fewer where TCP's window is smaller
    #[arg(long, value_name = "BYTES", default_value = "1M", value_parser = limit)]
    pub limit: usize,
    /// Accelerate this program although this kernel may make it hang
    ///
    /// Give its file name with or without a version (python3 for python3.11).
    #[arg(long, value_name = "PROGRAM")]
    pub allow: Vec<String>,
    /// Accelerate at once, even if a program may block in recv
    ///
    /// The kernel then returns EAGAIN if a signal, debugger, stop or reset interrupts the wait.
    #[arg(long)]
    pub blocking: bool,
    /// Accelerate between different users too
    ///
    /// A receiver that is stopped inside its system call then blocks the sender.
    #[arg(long)]
    pub across_users: bool,
    /// Pin the two threads of a ping-pong connection to one CPU
    ///
    /// Changes the CPU affinity of other programs' threads, and restores it afterwards.
    #[arg(long)]
    pub pair: bool,
    /// Pin pairs even if they do not become faster (for tests)
    #[arg(long, hide = true, requires = "pair")]
    pub pair_anyway: bool,
    /// Accelerate even if other BPF programs filter or trace the cgroup
    #[arg(long)]
    pub yes: bool,
    /// Verify sent against received bytes by checksum; exit with 1 on a mismatch
    ///
    /// Checksums are computed at the programs' system calls. Slows every system call of the machine a little.
    #[arg(long)]
    pub verify: bool,
    /// Corrupt a byte in every Nth message (tests --verify)
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub change_each: Option<u32>,
    /// Drop a byte of every Nth message (tests --verify)
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub lose_each: Option<u32>,
    /// Stay so long in every send between the verdict and the other end's queue (tests what closes in between)
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub linger_us: Option<u32>,
    /// Disable --limit: memory grows while a reader stops
    #[arg(long, hide = true)]
    pub no_guard: bool,
    /// Create this file when connections are being accelerated
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}

/// A message takes its bytes and 1 KiB of it: with less room nothing of use would be redirected.
fn limit(text: &str) -> Result<usize, String> {
    let bytes = parse_size(text)?;
    if bytes >= 4096 {
        Ok(bytes)
    } else {
        Err("must be at least 4K".into())
    }
}

impl Common {
    /// For programs in these control groups.
    pub(super) fn options(&self, cgroups: Vec<PathBuf>) -> Options {
        Options {
            cgroups,
            ports: self.port.clone(),
            connections: self.connections,
            limit_bytes: self.limit as u64,
            guard: !self.no_guard,
            verify: self.verify,
            blocking: self.blocking,
            across_users: self.across_users,
            pair: self.pair,
            spoil: Spoil {
                change_each: self.change_each,
                lose_each: self.lose_each,
                linger_us: self.linger_us,
            },
            refused: Vec::new(),
            refused_versions: Vec::new(),
            allowed: self.allow.clone(),
            watches_calls: true,
        }
    }

    pub(super) fn refuse_test_hooks(&self) -> anyhow::Result<()> {
        test_hooks::refuse_where_missing(&[
            ("--change-each", self.change_each.is_some()),
            ("--lose-each", self.lose_each.is_some()),
            ("--linger-us", self.linger_us.is_some()),
            ("--pair-anyway", self.pair_anyway),
        ])
    }
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub common: Common,
    /// Include programs in this cgroup, such as a running server (repeatable)
    #[arg(long = "with", value_name = "CGROUP")]
    pub with: Vec<PathBuf>,
    /// Write the final counters to this file as one JSON object
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Print the final counters on stderr as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Run this command in its own cgroup, exit with its exit code
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Clone, Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub common: Common,
    /// Accelerate programs in this cgroup and its descendants (repeatable)
    #[arg(long, value_name = "PATH", required_unless_present = "pid")]
    pub cgroup: Vec<PathBuf>,
    /// Accelerate programs in the cgroup of this process (repeatable)
    #[arg(short, long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Stop after this time (500ms, 5s, 2m; a bare number is in seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// Print the final counters as one JSON object
    #[arg(long)]
    pub json: bool,
}
