//! `hopscope vnet serve`: a back end that carries a guest's packets.
use super::recording;
use crate::command::stop_socket;
use crate::{event_file, netns};
use anyhow::{Context, bail};
use clap::Args;
use hopscope_netio::{
    DiscardPort, OpenOptions, PacketIo, PacketOptions, PacketPort, PortName, TapOptions, TapPort,
};
use hopscope_serving::events::EventFile;
use hopscope_serving::privileges::RunAs;
use hopscope_vnet::events::End;
use hopscope_vnet::policy::PolicyKind;
use hopscope_vnet::serve::{BackEndPlan, Kicks, Server, qemu};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod output;

/// A network device for a virtual machine or any other vhost-user front end. Forwards packets between the guest and
/// a TAP device, a network device or an AF_XDP socket. Stops on SIGINT or SIGTERM and prints a summary.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("port").required(true)))]
pub struct ServeArgs {
    /// vhost-user socket
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Connect to the socket; the front end listens (QEMU: server=on)
    #[arg(long)]
    client: bool,
    /// Use this TAP device; create it if it does not exist
    #[arg(long, value_name = "NAME", group = "port")]
    tap: Option<String>,
    /// Use an existing device, such as a veth end, through a packet socket
    #[arg(long, value_name = "DEVICE", group = "port")]
    veth: Option<String>,
    /// Use an existing device through AF_XDP, which takes all frames of the queue
    #[arg(long, value_name = "DEVICE[:QUEUE]", group = "port")]
    xdp: Option<String>,
    /// Use no device: count and drop what the guest sends (for measurement)
    #[arg(long, group = "port")]
    discard: bool,
    /// Network namespace of the device: ip-netns name or path
    #[arg(long, value_name = "NAME|PATH")]
    netns: Option<String>,
    /// Number of queue pairs, with --tap; one thread serves all
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32))]
    queues: u16,
    /// Switch to this user and its groups after setup; capabilities are always dropped
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Do not offer checksum offload and TSO
    #[arg(long)]
    no_offload: bool,
    /// When to interrupt the guest for transmitted packets
    ///
    /// Policies: plain, suppress, event-idx, tam[:LIMIT], batch[:LIMIT], ahc:US:LIMIT, ahc-window:US:LIMIT,
    /// coal:PACKETS:US, adaptive.
    #[arg(long, value_name = "POLICY", default_value = "batch")]
    tx_call_policy: PolicyKind,
    /// When to interrupt the guest for received packets, of the same policies
    #[arg(long, value_name = "POLICY", default_value = "batch")]
    rx_call_policy: PolicyKind,
    /// When the guest kicks: event-idx, flags, adaptive or defer:K:US
    ///
    /// flags: VIRTIO_F_EVENT_IDX is not offered. adaptive: the back end busy-polls for as long as a kick costs,
    /// then enables kicks. defer:K:US: after K entries in a row, kick at the K-th entry, or not at all and poll
    /// after US microseconds.
    #[arg(long, value_name = "POLICY", default_value = "event-idx")]
    kick_policy: Kicks,
    /// Control socket for `vnet stat` and `vnet set` [default: SOCKET.control]
    #[arg(long, value_name = "PATH", conflicts_with = "no_control")]
    control: Option<PathBuf>,
    /// Do not create a control socket
    #[arg(long)]
    no_control: bool,
    /// Evaluate other policies in shadow mode, for `vnet stat --explain`
    #[arg(long)]
    shadows: bool,
    /// Record each kick, drain and interrupt for `hopscope report`
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Create this file when listening
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Print one JSON object per line: ready, events, then a summary
    #[arg(long)]
    json: bool,
}

impl ServeArgs {
    fn control(&self) -> Option<PathBuf> {
        let path = || control_of(&self.socket);
        (!self.no_control).then(|| self.control.clone().unwrap_or_else(path))
    }
}

/// Beside the socket of vhost-user.
pub(super) fn control_of(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".control");
    path.into()
}

pub fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let stop = stop_socket()?;
    let user = args.user.as_deref().map(RunAs::named).transpose()?;
    let ports = ports(&args)?;
    let (events, file) = recording::begin(args.output.as_deref(), End::Back, args.queues)?;
    let plan = BackEndPlan {
        events,
        socket: args.socket.clone(),
        client: args.client,
        ports,
        segments: (args.tap.is_some() || args.discard) && !args.no_offload,
        control: args.control(),
        shadows: args.shadows,
        kicks: args.kick_policy,
        rx_calls: args.rx_call_policy,
        tx_calls: args.tx_call_policy,
    };
    let server = Server::start(plan)?;
    server.drop_privileges(user.as_ref())?;
    let file = file.map(EventFile::start);
    say_ready(&args)?;
    let mut unsaid = Ok(());
    let (counts, served) = server.run(stop.as_fd(), &mut |notice| {
        let said = output::notice(&notice, args.json);
        if unsaid.is_ok() {
            unsaid = said;
        }
    });
    let failed = served.as_ref().err().map(ToString::to_string);
    let kept = event_file::finish(file, failed, args.json);
    if let Ok(counts) = &counts {
        output::summary(counts, args.json)?;
    }
    served?;
    let counts = counts?;
    unsaid.context("saying what happens")?;
    kept?;
    if let Some(n) = counts.pairs.iter().position(|pair| !pair.conserved()) {
        bail!("packet counters of pair {n} do not add up: a bug in hopscope");
    }
    Ok(ExitCode::SUCCESS)
}

fn say_ready(args: &ServeArgs) -> anyhow::Result<()> {
    let socket = std::path::absolute(&args.socket)?;
    let socket = socket
        .to_str()
        .context("--socket is no UTF-8, and QEMU needs its name")?;
    let peer = qemu(socket, args.client, args.queues);
    if args.json {
        let line = serde_json::json!({
            "type": "ready", "schema": 1, "socket": args.socket, "qemu": peer,
            "tx_call_policy": args.tx_call_policy, "rx_call_policy": args.rx_call_policy,
            "kick_policy": args.kick_policy, "control": args.control(),
        });
        writeln!(std::io::stdout(), "{line}")?;
    } else {
        let doing = if args.client {
            "connecting to"
        } else {
            "listening on"
        };
        crate::status::note!(
            "{doing} {}; calls: tx {}, rx {}; kicks: {}",
            args.socket.display(),
            args.tx_call_policy,
            args.rx_call_policy,
            args.kick_policy
        );
        if !crate::status::is_quiet() {
            eprintln!(
                "hopscope: for QEMU (with -accel tcg also: vectors=0 at virtio-net-pci):\n  {peer}"
            );
        }
    }
    if let Some(path) = &args.ready_file {
        std::fs::write(path, "").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// A port for each pair of queues.
fn ports(args: &ServeArgs) -> anyhow::Result<Vec<Box<dyn PacketIo>>> {
    if args.queues > 1 && args.tap.is_none() {
        bail!("--queues is for --tap: a packet or XDP socket here has one");
    }
    netns::within(args.netns.as_deref(), || open(args))
}

fn open(args: &ServeArgs) -> anyhow::Result<Vec<Box<dyn PacketIo>>> {
    if let Some(tap) = &args.tap {
        let options = TapOptions {
            queues: args.queues.into(),
            gso: !args.no_offload,
        };
        let ports = TapPort::open(tap, options)?;
        return Ok(ports.into_iter().map(|port| Box::new(port) as _).collect());
    }
    if let Some(device) = &args.veth {
        let port = PacketPort::open(device, PacketOptions::default())?;
        return Ok(vec![Box::new(port)]);
    }
    if args.discard {
        return Ok(vec![Box::new(DiscardPort::default())]);
    }
    let name = format!("xdp:{}", args.xdp.as_deref().unwrap_or_default());
    let name: PortName = name.parse()?;
    Ok(vec![name.open(OpenOptions::default())?])
}
