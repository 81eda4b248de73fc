//! `hopscope splice echo`: the same echo in the kernel, by threads, through io_uring.
use super::server_lifecycle::Serving;
use crate::address::to_listen_on;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hopscope_splice::cgroup;
use hopscope_splice::echo::{EchoPlan, EchoServer, KernelPlan, Mode};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
pub struct EchoArgs {
    /// Echo engine
    #[arg(long, value_enum, default_value_t = ModeArg::Kernel)]
    mode: ModeArg,
    /// Listen on ADDR:PORT, or :PORT for all addresses; port 0 prints a free one
    ///
    /// [::] accepts IPv4 too.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7007")]
    listen: String,
    /// Do not accept IPv4 connections on an IPv6 wildcard address
    #[arg(long)]
    v6_only: bool,
    /// Length of each thread's accept queue
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(i32).range(1..))]
    backlog: i32,
    /// user-mt: number of threads [default: number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Option<u32>,
    /// kernel: reset a connection if the client leaves more bytes unread
    #[arg(long, value_name = "BYTES", default_value = "4M", value_parser = limit)]
    limit: u32,
    /// kernel: redirect to sockets of local clients, which may notice (docs/echo.md)
    #[arg(long, conflicts_with = "no_local_clients")]
    local_clients: bool,
    /// kernel: do not redirect to sockets of local clients, as by default
    #[arg(long)]
    no_local_clients: bool,
    /// kernel: cgroup2 directory to attach to [default: the cgroup2 mount point]
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    #[command(flatten)]
    serving: Serving,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// sockops and sk_skb programs; user space accepts and closes
    Kernel,
    /// One thread, epoll
    User,
    /// Threads with an accept queue each (SO_REUSEPORT)
    UserMt,
    /// One thread, io_uring
    Uring,
}

/// From one packet to what the kernel's 32-bit numbers can tell apart.
pub(super) fn limit(text: &str) -> Result<u32, String> {
    let bytes = crate::units::parse_size(text)?;
    if (65536..=1 << 30).contains(&bytes) {
        Ok(bytes as u32)
    } else {
        Err("must be from 64K to 1G".into())
    }
}

impl EchoArgs {
    fn plan(&self) -> anyhow::Result<EchoPlan> {
        let mode = match self.mode {
            ModeArg::Kernel => Mode::Kernel,
            ModeArg::User => Mode::User,
            ModeArg::UserMt => Mode::UserMt,
            ModeArg::Uring => Mode::Uring,
        };
        if self.threads.is_some() && mode != Mode::UserMt {
            bail!("--threads is for --mode user-mt; the others have one");
        }
        let here = std::thread::available_parallelism().map_or(1, usize::from);
        let cgroup = match (&self.cgroup, mode) {
            (Some(path), _) => cgroup::checked(path),
            (None, Mode::Kernel) => cgroup::root(),
            (None, _) => Ok(PathBuf::new()),
        };
        let mut kernel = KernelPlan::new(cgroup.context("--mode user needs no control groups")?);
        kernel.egress_limit = self.limit;
        kernel.local_clients = self.local_clients;
        Ok(EchoPlan {
            mode,
            listen: to_listen_on(&self.listen)?,
            v6_only: self.v6_only,
            backlog: self.backlog,
            threads: self.threads.map_or(here, |threads| threads as usize),
            kernel,
        })
    }
}

pub(super) fn run(args: &EchoArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::command::stop_flag()?;
    let server = EchoServer::start(&args.plan()?)?;
    args.serving
        .say_ready(server.address(), server.descriptors())?;
    args.serving.wait(&stop, || server.has_failed())?;
    let report = server.stop()?;
    args.serving.say_summary(&report)?;
    Ok(ExitCode::SUCCESS)
}
