//! `hopscope splice`: TCP that stays out of the stack.
mod args;
mod attach;
mod choose;
mod control;
mod echo;
mod enter;
mod keep;
mod proxy;
mod run;
mod serving;
mod session;

use clap::Subcommand;
use std::process::ExitCode;

/// A verb, a file.
#[derive(Subcommand)]
pub enum Verb {
    /// Run a command whose programs' connections to each other take the short cut
    Run(args::RunArgs),
    /// The same for programs that run: by control group or process, until Ctrl-C
    Attach(args::AttachArgs),
    /// Accelerators that run on this machine
    List(control::ListArgs),
    /// Their counters: how much took the short cut, how much TCP, and why
    Stat(control::StatArgs),
    /// End one: connections go on over TCP
    Detach(control::DetachArgs),
    /// A TCP echo server in the kernel, by threads, or through io_uring, to compare
    Echo(echo::EchoArgs),
    /// Hand TCP connections on to another address, by the kernel or by a copying loop
    Proxy(proxy::ProxyArgs),
    #[command(name = "__enter", hide = true)]
    Enter(enter::EnterArgs),
    #[command(name = "__keep", hide = true)]
    Keep(keep::KeepArgs),
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
        Verb::Enter(args) => enter::run(&args),
        Verb::Keep(args) => keep::run(&args),
    }
}
