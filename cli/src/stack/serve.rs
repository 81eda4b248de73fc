//! `hopscope stack serve`: the stack with a server in it.
use super::cores::Cores;
use super::link::LinkArgs;
use super::running::{self, Stop};
use super::which;
use crate::{event_file, host};
use anyhow::Context;
use clap::Args;
use hopscope_serving::events::EventFile;
use hopscope_serving::privileges::{self, RunAs};
use hopscope_stack_instance::app::{
    AppCounts, Chargen, DatagramService, Datagrams, Discard, Echo, Http, Server,
};
use hopscope_stack_instance::programs::{Offer, Programs};
use hopscope_stack_instance::{App, events};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

/// Runs a stack in user space, on a device beside the kernel's stack or on a TAP device: for programs that `stack run --mode pipeline`
/// starts, or with a server in it (--app). One thread an engine; it sleeps while nothing happens. Stops on SIGINT or SIGTERM and
/// prints a summary.
#[derive(Args)]
pub struct ServeArgs {
    #[command(flatten)]
    link: LinkArgs,
    /// Server: echo, discard (both also over UDP), chargen, http:BYTES (body length) [default: none, programs attach]
    #[arg(long, value_name = "APP")]
    app: Option<AppName>,
    /// Port [default: echo 7, discard 9, chargen 19, http 80]
    #[arg(long, value_name = "N", requires = "app", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Connections that wait to be accepted, at most
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    backlog: u32,
    /// Seed of sent (chargen) or expected (discard) bytes; without it discard only counts
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Engines, each with a thread and a queue of the device (tap, packet)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    engines: u16,
    /// Processors that the engines run on, one for each: 0,2-3 [default: wherever]
    #[arg(long, value_name = "LIST")]
    cores: Option<Cores>,
    /// Switch to this user and its groups after setup; capabilities are always dropped
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Control socket for `stack ss` and `stack stats` [default: made from --if]
    #[arg(long, value_name = "PATH", conflicts_with = "no_control")]
    control: Option<PathBuf>,
    /// Socket at which programs attach [default: made from --if]
    #[arg(long, value_name = "PATH", conflicts_with = "app")]
    socket: Option<PathBuf>,
    /// Do not create a control socket
    #[arg(long)]
    no_control: bool,
    /// Record each segment's way to the server and back for `hopscope report`
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Create this file when listening
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Print one JSON object per line: ready, then a summary
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppName {
    Echo,
    Discard,
    Chargen,
    Http { body_bytes: usize },
}

/// Longer bodies are for servers of files.
const BODY_MAX: usize = 64 << 20;

impl FromStr for AppName {
    type Err = String;

    fn from_str(text: &str) -> Result<AppName, String> {
        let body = text.strip_prefix("http:").map(crate::units::parse_size);
        match (text, body) {
            ("echo", _) => Ok(AppName::Echo),
            ("discard", _) => Ok(AppName::Discard),
            ("chargen", _) => Ok(AppName::Chargen),
            (_, Some(Ok(body_bytes))) if body_bytes <= BODY_MAX => Ok(AppName::Http { body_bytes }),
            (_, Some(Ok(_))) => Err("a body has at most 64M".into()),
            (_, Some(Err(error))) => Err(error),
            _ => Err("echo, discard, chargen or http:BYTES".into()),
        }
    }
}

impl ServeArgs {
    fn control(&self) -> Option<PathBuf> {
        let path = || which::control_of(&self.link.interface);
        (!self.no_control).then(|| self.control.clone().unwrap_or_else(path))
    }

    fn port_number(&self) -> u16 {
        self.port.unwrap_or(match self.app {
            Some(AppName::Echo) | None => 7,
            Some(AppName::Discard) => 9,
            Some(AppName::Chargen) => 19,
            Some(AppName::Http { .. }) => 80,
        })
    }

    /// Where programs attach, if they may.
    fn socket(&self) -> Option<PathBuf> {
        let path = || which::programs_of(&self.link.interface);
        (self.app.is_none()).then(|| self.socket.clone().unwrap_or_else(path))
    }

    /// What programs are to be given, where it is another one than theirs.
    fn socket_option(&self) -> String {
        let path = self.socket.as_ref();
        path.map_or_else(String::new, |path| format!("--socket {} ", path.display()))
    }

    /// Every address of each family that there is one of.
    fn listen(&self) -> Vec<SocketAddr> {
        let port = self.port_number();
        let v4 = self.link.has(false).then_some(Ipv4Addr::UNSPECIFIED.into());
        let v6 = self.link.has(true).then_some(Ipv6Addr::UNSPECIFIED.into());
        let any = [v4, v6].into_iter().flatten();
        any.map(|ip| SocketAddr::new(ip, port)).collect()
    }

    /// At every address.
    fn datagrams(&self, service: DatagramService) -> Datagrams {
        let port = self.port_number();
        let at = self
            .link
            .addr
            .iter()
            .map(|a| SocketAddr::new(a.address, port));
        Datagrams::new(service, at.collect())
    }

    fn server(&self, app: AppName) -> Box<dyn App> {
        let (listen, backlog) = (self.listen(), self.backlog);
        match app {
            AppName::Echo => {
                let echo = Server::new(Echo::default(), listen, backlog);
                Box::new(echo.with_datagrams(self.datagrams(DatagramService::Echo)))
            }
            AppName::Discard => {
                let discard = Server::new(Discard::new(self.seed), listen, backlog);
                Box::new(discard.with_datagrams(self.datagrams(DatagramService::Discard)))
            }
            AppName::Chargen => {
                let chargen = Chargen::new(self.seed.unwrap_or(1));
                Box::new(Server::new(chargen, listen, backlog))
            }
            AppName::Http { body_bytes } => {
                Box::new(Server::new(Http::new(body_bytes), listen, backlog))
            }
        }
    }
}

pub fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    if let Some(cores) = &args.cores {
        cores.check(args.engines)?;
    }
    let stop = Stop::at_signals()?;
    let user = args.user.as_deref().map(RunAs::named).transpose()?;
    let datagrams_at_first = args.app.is_none();
    let devices = args.link.open(args.engines, datagrams_at_first)?;
    let mtu = devices.first().map_or(0, |device| device.mtu.get());
    let kept = devices
        .first()
        .is_some_and(|device| device.kept().is_some());
    let recording = args.output.as_deref();
    let recording = recording.map(|path| events::begin(path, &host::meta(), args.engines));
    let (events, file) = recording.transpose()?.unzip();
    let log = |n| events.as_ref().map_or_else(Default::default, |e| e.log(n));
    let waiting = args
        .socket()
        .map(|path| programs(&args, &path, user.as_ref()));
    let mut programs = waiting.transpose()?.into_iter().flatten();
    let app = || -> Box<dyn App> {
        match (args.app, programs.next()) {
            (Some(app), _) => args.server(app),
            (None, Some(programs)) => Box::new(programs),
            // One for each engine.
            (None, None) => unreachable!("an engine without programs"),
        }
    };
    let (mut instances, mails) = running::start(&args.link, devices, log, app, datagrams_at_first)?;
    // Its logs alone keep the file open.
    drop(events);
    let control = args.control();
    if let (Some(path), Some(first)) = (&control, instances.first_mut()) {
        let control = first.open_control(path, &mails[1..])?;
        if let Some(user) = &user {
            control.hand_to(user)?;
        }
    }
    privileges::drop_all(user.as_ref())?;
    let file = file.map(EventFile::start);
    say_ready(&args, (mtu, kept))?;
    let served = running::run(&mut instances, &stop, args.cores.as_ref());
    let mut engines = Vec::new();
    let mut sum = AppCounts::default();
    for mut instance in instances {
        sum += instance.app().counts();
        // Where something has failed, what is left to be sent cannot be.
        engines.extend(instance.end().ok());
    }
    let failed = served.as_ref().err().map(ToString::to_string);
    let kept = event_file::finish(file, failed, args.json);
    summary(&sum, engines, args.json)?;
    served?;
    kept?;
    Ok(ExitCode::SUCCESS)
}

/// What waits for programs, in whose directory its user may remove it.
fn programs(args: &ServeArgs, path: &Path, user: Option<&RunAs>) -> anyhow::Result<Vec<Programs>> {
    let offer = Offer {
        device: args.link.interface.to_string(),
        reach: args.link.reach(),
    };
    let programs = Programs::open(path, &offer, args.engines)?;
    if let (Some(user), Some(first)) = (user, programs.first()) {
        first.hand_to(user)?;
    }
    Ok(programs)
}

fn say_ready(args: &ServeArgs, (mtu, kept): (u16, bool)) -> anyhow::Result<()> {
    let port = args.port_number();
    let socket = args.socket();
    let at = |a: &hopscope_stack_engine::config::Address| SocketAddr::new(a.address, port);
    let listen: Vec<SocketAddr> = args.link.addr.iter().map(at).collect();
    let first = listen.first().context("no address")?;
    if args.json {
        let (listen, first) = match &socket {
            Some(_) => (None, None),
            None => (Some(&listen), Some(first.to_string())),
        };
        let line = json!({
            "type": "ready", "schema": 1, "listen": first, "addresses": listen, "socket": socket,
            "if": args.link.interface.to_string(), "mtu": mtu, "kept_from_kernel": kept, "engines": args.engines, "control": args.control(),
        });
        writeln!(std::io::stdout(), "{line}")?;
    } else if let Some(socket) = &socket {
        crate::status::note!(
            "programs attach at {} to {}: hopscope stack run --mode pipeline --if {} {}-- COMMAND",
            socket.display(),
            args.link.interface,
            args.link.interface,
            args.socket_option()
        );
    } else {
        let listen: Vec<String> = listen.iter().map(ToString::to_string).collect();
        crate::status::note!(
            "listening on {} at {}",
            listen.join(", "),
            args.link.interface
        );
    }
    if let Some(path) = &args.ready_file {
        std::fs::write(path, "").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn summary(counts: &AppCounts, engines: Vec<Value>, as_json: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if as_json {
        let line = json!({
            "type": "summary", "schema": 1, "app": counts, "engines": engines,
        });
        writeln!(out, "{line}")?;
        return Ok(());
    }
    writeln!(
        out,
        "connections {}, ended {}, failed {}; received {} B, sent {} B, answered {}, wrong {}",
        counts.accepted,
        counts.ended,
        counts.failed,
        counts.bytes_received,
        counts.bytes_sent,
        counts.answered,
        counts.corrupt
    )?;
    let datagrams = counts.datagrams_received + counts.datagrams_sent;
    if datagrams + counts.datagrams_dropped + counts.datagrams_malformed > 0 {
        writeln!(
            out,
            "datagrams received {}, sent {}, not answered {}, dropped {}, malformed {}",
            counts.datagrams_received,
            counts.datagrams_sent,
            counts.datagrams_refused,
            counts.datagrams_dropped,
            counts.datagrams_malformed
        )?;
    }
    if counts.programs + counts.programs_refused > 0 {
        writeln!(
            out,
            "programs {}, refused {}; calls that failed {}, waits for a descriptor {}",
            counts.programs,
            counts.programs_refused,
            counts.requests_refused,
            counts.descriptors_missing
        )?;
    }
    for (n, engine) in engines.iter().enumerate() {
        let of = |path: &str| engine.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        writeln!(
            out,
            "engine {n}: segments in {}, out {}, retransmitted {}; port: received {}, dropped before it {}, sent {}, failed {}",
            of("/counters/Tcp/InSegs"),
            of("/counters/Tcp/OutSegs"),
            of("/counters/Tcp/RetransSegs"),
            of("/port/received"),
            of("/port/receive_dropped"),
            of("/port/sent"),
            of("/port/send_failed"),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_by_name() {
        assert_eq!("echo".parse(), Ok(AppName::Echo));
        let http = |body_bytes| Ok(AppName::Http { body_bytes });
        assert_eq!("http:600".parse(), http(600));
        assert_eq!("http:1M".parse(), http(1 << 20));
        for wrong in ["http", "http:", "http:x", "http:65M", "ftp", ""] {
            assert!(wrong.parse::<AppName>().is_err(), "{wrong}");
        }
    }
}
