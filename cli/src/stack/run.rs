//! `hopscope stack run`: a program of others, on the stack in its own process.
use super::link::{LinkArgs, parse_prefix};
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hopscope_netio::PortName;
use hopscope_process::environment;
use hopscope_stack_engine::config::Address;
use hopscope_stack_instance::handed;
use hopscope_stack_instance::handed::policy::{self, Rule};
use hopscope_stack_instance::handed::{
    ENVIRONMENT, Handed, HandedInline, HandedPort, HandedStack, Policy, Reach,
};
use hopscope_stack_instance::unseen;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::net::if_::if_nametoindex;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

mod bypass;
mod instance;
mod library;

pub(super) use bypass::{BypassArgs, run as watch_for_bypasses};

/// Runs a program, unmodified, with its TCP and UDP sockets on a stack in user space: those on the stack's addresses and those that
/// connect to where it leads. All others are the kernel's, as ever. A library that is loaded with the program takes its socket
/// calls. Its exit code is the program's; 125: `hopscope` itself failed.
#[derive(Args)]
#[command(mut_arg("addr", |addr| addr.required(false)))]
pub struct RunArgs {
    /// Where the stack runs: inline (in the program's own process, one process at a time), pipeline (in a `stack serve`, for any number of
    /// processes), auto (pipeline where a `stack serve` has the port, inline otherwise)
    #[arg(long, value_enum, default_value_t = Mode::Inline)]
    mode: Mode,
    #[command(flatten)]
    link: LinkArgs,
    /// Socket of the `stack serve` that has the stack (--mode pipeline) [default: made from --if]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Connections and datagrams to this prefix are the kernel's, though the stack leads there; repeat for several
    #[arg(long, value_name = "IP/LEN", value_parser = parse_prefix)]
    kernel: Vec<Address>,
    /// File of rules for sockets that the stack would have: which are the kernel's, by program, address and port (docs/stack.md)
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Who has sockets that listen or receive on every address: both (stack and kernel) or stack
    #[arg(long, value_enum, default_value_t = Wildcard::Both)]
    wildcard: Wildcard,
    /// Say on standard error of each socket whose it is, and of each network call that by-passed the library's hooks (as root)
    #[arg(long)]
    trace: bool,
    /// Program and arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    Inline,
    Pipeline,
    Auto,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wildcard {
    Both,
    Stack,
}

/// Returns only where it fails.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let (name, arguments) = args.command.split_first().context("no command")?;
    let path = unseen::find(name, &std::env::var_os("PATH").unwrap_or_default())?;
    unseen::check(&path)?;
    let library = library::find()?;
    let (stack, reach, instance) = match args.mode {
        Mode::Inline => stack_inline(args)?,
        Mode::Pipeline => instance::attach(args, name)?,
        Mode::Auto => match instance::attach_if_there(args, name)? {
            Ok(stack) => stack,
            Err(why) => {
                let stack = stack_inline(args)?;
                log::warn!("inline: {why}");
                stack
            }
        },
    };
    let handed = Handed {
        version: env!("CARGO_PKG_VERSION").into(),
        stack,
        reach,
        policy: policy(args)?,
        trace: args.trace,
    };
    let config = serde_json::to_vec(&handed)?;
    // That much is read of it there.
    if config.len() > handed::BYTES_MAX {
        bail!("what the program is to be handed is too long: fewer rules");
    }
    let config = file("hopscope-stack", &config, true)?;
    let owner = file("hopscope-owner", &[0; 8], false)?;
    let before = std::env::var_os("LD_PRELOAD");
    // Of the program, whose other entries stay as they are.
    environment::set("LD_PRELOAD", preload(library)).context("setting LD_PRELOAD")?;
    environment::set(ENVIRONMENT, format!("{config},{owner}"))
        .context("setting its configuration")?;
    if args.trace {
        bypass::watch(instance, before);
    }
    let error = Command::new(&path).arg0(name).args(arguments).exec();
    Err(error).with_context(|| format!("starting {}", path.display()))
}

fn policy(args: &RunArgs) -> anyhow::Result<Policy> {
    let prefixes = args.kernel.iter().map(|a| (a.address, a.prefix_bits));
    let mut rules: Vec<Rule> = prefixes.map(Rule::kernels).collect();
    if let Some(path) = &args.policy {
        let at = || path.display().to_string();
        let mut text = String::new();
        let file = File::open(path).with_context(at)?;
        let mut file = file.take(policy::FILE_MAX as u64 + 1);
        file.read_to_string(&mut text).with_context(at)?;
        if text.len() > policy::FILE_MAX {
            bail!(
                "{}: more than {} KiB: no policy",
                at(),
                policy::FILE_MAX >> 10
            );
        }
        rules.extend(
            policy::rules(&text)
                .map_err(anyhow::Error::msg)
                .with_context(at)?,
        );
    }
    let mut policy = Policy {
        wildcard_is_stack: args.wildcard == Wildcard::Stack,
        rules,
    };
    let resolved = |path: &str| {
        std::fs::canonicalize(path)
            .ok()?
            .into_os_string()
            .into_string()
            .ok()
    };
    policy.resolve(resolved);
    Ok(policy)
}

/// Whose stack, where it leads to, and the process of the instance.
type Attached = (HandedStack, Reach, Option<u32>);

fn stack_inline(args: &RunArgs) -> anyhow::Result<Attached> {
    Ok((HandedStack::Inline(inline(args)?), args.link.reach(), None))
}

/// The open port, and what the engine in the program is made with.
fn inline(args: &RunArgs) -> anyhow::Result<HandedInline> {
    if args.link.addr.is_empty() {
        bail!("--mode inline needs --addr IP/LEN, an address of the stack");
    }
    if args.socket.is_some() && args.mode == Mode::Inline {
        bail!("--socket is where a stack is asked for: --mode pipeline");
    }
    if args.link.spin {
        bail!("--spin: a program decides by itself when it waits");
    }
    let PortName::Packet { device: name_of } = &args.link.interface else {
        bail!(
            "{}: --mode inline takes packet:DEVICE alone; `stack serve` takes other ports",
            args.link.interface
        );
    };
    let devices = args.link.open(1, false)?;
    let device = devices.first().context("no device")?;
    let socket = device
        .port
        .wait_fd()
        .context("a port without a descriptor")?;
    Ok(HandedInline {
        port: HandedPort {
            device: name_of.clone(),
            index: if_nametoindex(name_of.as_str())
                .with_context(|| format!("the number of {name_of}"))?,
            fd: inherited(socket)?,
            max_frame_len: device.port.capabilities().max_frame_len,
            receive_frames: hopscope_stack_instance::device::RECEIVE_FRAMES,
            gso: device.offload.checksum,
            kept: device
                .kept()
                .map(|kept| inherited(kept.as_fd()))
                .transpose()?,
            claims: device
                .claims
                .iter()
                .map(|claim| inherited(claim.as_fd()))
                .collect::<anyhow::Result<_>>()?,
        },
        engine: args.link.handed(device)?,
    })
}

/// Before others that are to be preloaded: they are called through it.
fn preload(library: PathBuf) -> OsString {
    let mut all = library.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// A file in memory that the program inherits, by its number.
fn file(name: &str, content: &[u8], sealed: bool) -> anyhow::Result<i32> {
    let memfd = memfd_create(name, MFdFlags::MFD_ALLOW_SEALING | MFdFlags::MFD_CLOEXEC)
        .context("making a file in memory")?;
    nix::unistd::write(&memfd, content).context("writing a file in memory")?;
    if sealed {
        let all = SealFlag::F_SEAL_WRITE
            | SealFlag::F_SEAL_GROW
            | SealFlag::F_SEAL_SHRINK
            | SealFlag::F_SEAL_SEAL;
        fcntl(&memfd, FcntlArg::F_ADD_SEALS(all)).context("sealing a file in memory")?;
    }
    inherited(memfd.as_fd())
}

/// The same descriptor, not closed by exec, with a number that programs do not come to.
fn inherited(fd: BorrowedFd<'_>) -> anyhow::Result<i32> {
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).context("reading RLIMIT_NOFILE")?;
    let limit = limit.min(1 << 20);
    let lowest = limit - limit.min(1024) / 8;
    fcntl(fd, FcntlArg::F_DUPFD(lowest as i32)).context("handing a descriptor over")
}
