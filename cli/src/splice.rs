//! `hopscope splice`: TCP that stays out of the stack.
mod args;
mod attach;
mod control;
mod echo;
mod join_cgroup;
mod keeper;
mod proxy;
mod run;
mod server_lifecycle;
mod session;

use clap::Subcommand;
use std::process::ExitCode;

/// A verb, a file.
#[derive(Subcommand)]
pub enum Verb {
    /// Run a command and accelerate TCP connections between its programs
    Run(args::RunArgs),
    /// Accelerate running programs, by cgroup or process, until Ctrl-C
    Attach(args::AttachArgs),
    /// List running accelerators
    List(control::ListArgs),
    /// Show counters: bytes redirected, bytes over TCP, and why
    Stat(control::StatArgs),
    /// Stop an accelerator; its connections continue over TCP
    Detach(control::DetachArgs),
    /// Run a TCP echo server: sk_skb in the kernel, epoll threads, or io_uring
    Echo(echo::EchoArgs),
    /// Proxy TCP connections to another address, in the kernel or by copying
    Proxy(proxy::ProxyArgs),
    #[command(name = "__enter", hide = true)]
    Enter(join_cgroup::EnterArgs),
    #[command(name = "__keep", hide = true)]
    Keep(keeper::KeepArgs),
    #[command(name = "__tell", hide = true)]
    Tell(keeper::TellArgs),
}

pub fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        // With a command its exit code is ours, and 125 says that hopscope itself failed.
        Verb::Run(args) => run::run(&args).or_else(|e| Ok(crate::status::failed(&e, 125))),
        Verb::Attach(args) => attach::run(&args),
        Verb::List(args) => control::list(&args),
        Verb::Stat(args) => control::stat(&args),
        Verb::Detach(args) => control::detach(&args),
        Verb::Echo(args) => echo::run(&args),
        Verb::Proxy(args) => proxy::run(&args),
        Verb::Enter(args) => join_cgroup::run(&args),
        Verb::Keep(args) => keeper::run(&args),
        Verb::Tell(args) => keeper::run_tell(&args),
    }
}
