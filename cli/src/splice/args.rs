//! What can be asked of the accelerator.
use crate::units::{parse_size, parse_time};
use clap::Args;
use hopscope_splice::interpreters::is_version_of;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Which connections, and how much they may hold.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Only connections to servers on this port (may be given several times) [default: every port]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// Connections that take part at once; further ones stay plain TCP, and are counted
    #[arg(long, value_name = "N", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub connections: u32,
    /// Bytes of one direction that may be unread, at most; less where TCP would take less
    #[arg(long, value_name = "BYTES", default_value = "1M", value_parser = parse_size)]
    pub limit: usize,
    /// A program that takes part although this kernel may make it hang, by its file's name, without a version
    /// or with it (python3 for python3.11)
    #[arg(long, value_name = "PROGRAM")]
    pub allow: Vec<String>,
    /// Join connections at once, also where a program may wait in recv: the kernel tells it EAGAIN where
    /// a signal, a debugger, a stop or a reset ends the wait
    #[arg(long)]
    pub blocking: bool,
    /// Join ends of different users too: a receiver that stops inside its call then holds up the sender
    #[arg(long)]
    pub across_users: bool,
    /// Place the two threads of a connection that take turns on one processor, as long as they do: changes the
    /// affinity of other programs' threads, and restores it
    #[arg(long)]
    pub pair: bool,
    /// Whether or not they are faster so: to see what is changed and restored
    #[arg(long, hide = true, requires = "pair")]
    pub pair_anyway: bool,
    /// Take the short cut even where other programs filter or watch the control group
    #[arg(long)]
    pub yes: bool,
    /// Compare what was sent with what was received, by sums taken in the programs' system calls; exit
    /// code 1 where they differ. Every system call of the machine costs a little more meanwhile
    #[arg(long)]
    pub verify: bool,
    /// Each N'th message gets another byte: to see that `--verify` notices
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub change_each: Option<u32>,
    /// Each N'th message loses a byte
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub lose_each: Option<u32>,
    /// Without the limit: memory grows while a reader stops
    #[arg(long, hide = true)]
    pub no_guard: bool,
    /// Create this file once connections take part
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
}

impl Common {
    pub(super) fn allows(&self, program: &str) -> bool {
        let is_meant = |name: &String| is_version_of(program, name);
        self.allow.iter().any(is_meant)
    }
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub common: Common,
    /// Programs in this control group take part too: a server that runs already
    #[arg(long = "with", value_name = "CGROUP")]
    pub with: Vec<PathBuf>,
    /// Write the counters to this file at the end, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// The counters at the end as one JSON object, on stderr: stdout is the command's
    #[arg(long)]
    pub json: bool,
    /// Run this in a control group of its own; the exit code is its own
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
}

#[derive(Debug, Clone, Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub common: Common,
    /// Programs in this control group, and those below it (may be given several times)
    #[arg(long, value_name = "PATH", required_unless_present = "pid")]
    pub cgroup: Vec<PathBuf>,
    /// Programs in the control group of this process (may be given several times)
    #[arg(short, long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Stop after this time (500ms, 5s, 2m; a bare number is seconds)
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub duration: Option<Duration>,
    /// The counters at the end as one JSON object
    #[arg(long)]
    pub json: bool,
}
