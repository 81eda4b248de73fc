//! What the command takes.
use crate::units::{parse_rate, parse_time};
use clap::Args;
use hopscope_load::packets::flow::Protocol;
use hopscope_load::packets::order::Scatter;
use hopscope_load::packets::sizes::Sizes;
use hopscope_netio::PortName;
use hopscope_openloop::Arrivals;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Without --rate: slow enough to harm nobody.
pub(super) const DEFAULT_RATE: f64 = 1000.0;

#[derive(Args)]
pub(crate) struct PacketsArgs {
    /// Transmit on this port: packet:DEVICE, mem: …
    #[arg(long, value_name = "PORT")]
    pub tx: Option<PortName>,
    /// Receive on this port, which may be that of --tx [default: transmit only]
    #[arg(long, value_name = "PORT")]
    pub rx: Option<PortName>,
    /// Packets per second (500, 10k, 1.5M, max) [default: 1000; --replay: as captured]
    #[arg(short, long, value_name = "PER_SECOND|max", value_parser = rate)]
    pub rate: Option<Rate>,
    /// Measure for this time without --warmup (500ms, 5s; a bare number is seconds)
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    pub duration: Duration,
    /// Stop after this many packets
    #[arg(short, long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Start to measure after this time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    pub warmup: Duration,
    /// Ramp the rate up linearly from zero over this time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    pub ramp: Duration,
    /// constant, poisson, burst:N (N back to back), poisson+burst:N/K (every Kth is N)
    #[arg(long, value_name = "MODEL", default_value = "constant", value_parser = arrivals)]
    pub arrivals: ArrivalsArg,
    /// Frame size in bytes with FCS: 64, imix (64:7,594:4,1518:1), SIZE:WEIGHT,…
    #[arg(short, long, value_name = "BYTES", default_value = "64")]
    pub size: Sizes,
    /// udp, tcp (data segments without a handshake), or icmp (echo requests)
    #[arg(long, value_name = "PROTOCOL", default_value = "udp")]
    pub protocol: Protocol,
    /// Number of flows; they differ in source port, then in source address
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    pub flows: u32,
    /// Distribute packets over flows by Zipf's law: flow k in proportion to k^-S
    #[arg(long, value_name = "S", value_parser = zipf)]
    pub zipf: Option<f64>,
    /// Send N packets of a flow back to back (1: ABCABC, 2: AABBCC)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub slf: u32,
    /// Send the last N of every K packets with an SLF of 1, whatever --slf is
    #[arg(long, value_name = "N/K", value_parser = scatter)]
    pub scatter: Option<Scatter>,
    /// First source address [default: 198.18.0.1, with --ipv6: 2001:2::1]
    #[arg(long, value_name = "IP")]
    pub src: Option<IpAddr>,
    /// Destination address [default: 198.19.0.1, with --ipv6: 2001:2:0:ffff::1]
    #[arg(long, value_name = "IP")]
    pub dst: Option<IpAddr>,
    /// Use IPv6 default addresses
    #[arg(long)]
    pub ipv6: bool,
    /// First source port; for ICMP, the identifier
    #[arg(long, value_name = "PORT", default_value_t = 1024)]
    pub sport: u16,
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 9,
        help = "Destination port"
    )]
    pub dport: u16,
    /// Source MAC address [default: that of the --tx device]
    #[arg(long, value_name = "MAC", value_parser = hopscope_load::packets::link::parse_mac)]
    pub src_mac: Option<[u8; 6]>,
    /// Destination MAC address [default: neighbour table, --rx device, or veth peer]
    #[arg(long, value_name = "MAC", value_parser = hopscope_load::packets::link::parse_mac)]
    pub dst_mac: Option<[u8; 6]>,
    /// Generate flows that match N five-tuple rules in turn, or the rules of FILE
    #[arg(long, value_name = "N|FILE", conflicts_with_all = ["flows", "ipv6", "src", "dst", "protocol"])]
    pub rules: Option<String>,
    /// Write the rules of --rules as text; without --tx, then exit
    #[arg(long, value_name = "FILE", requires = "rules")]
    pub write_rules: Option<PathBuf>,
    /// Send the frames of a capture unchanged; match them by content, not by timestamp
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rules", "flows", "zipf", "slf", "scatter", "size", "protocol"])]
    pub replay: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Mark a packet as sent late if this far behind its scheduled time
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = parse_time)]
    pub behind_after: Duration,
    /// Count a packet as lost if it has not arrived after this time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = lost_after)]
    pub lost_after: Duration,
    /// Find the highest rate up to --rate with at most --loss (RFC 2544, 26.1)
    #[arg(long, requires_all = ["rate", "rx"], conflicts_with_all = ["packets", "hdr", "ramp", "count", "replay"])]
    pub find_max: bool,
    /// Packet loss allowed in a trial, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent, requires = "find_max")]
    pub loss: f64,
    /// Stop the search this close to a rate that failed, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = resolution, requires = "find_max")]
    pub resolution: f64,
    /// Number of threads; 2: one transmits, one receives
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub threads: Option<u8>,
    /// Busy-poll: more accurate, uses one CPU per thread
    #[arg(long)]
    pub spin: bool,
    /// Reflect: send what --rx receives out of --tx (or --rx), with MACs swapped
    #[arg(long, requires = "rx", conflicts_with_all = ["find_max", "rate", "replay", "rules", "packets", "hdr"])]
    pub reflect: bool,
    /// Write one row per packet as .csv, any other name as a .hop recording
    #[arg(short = 'w', long, value_name = "FILE")]
    pub packets: Option<PathBuf>,
    /// Write latencies as an HdrHistogram log, or NAME.hgrm as a percentile table
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Create this file when the ports are open (with --reflect)
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Print one JSON object per line: intervals or trials, then a summary
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rate {
    PerSecond(f64),
    Max,
}

fn rate(text: &str) -> Result<Rate, String> {
    match text {
        "max" => Ok(Rate::Max),
        text => parse_rate(text).map(Rate::PerSecond),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalsArg(pub Arrivals);

fn arrivals(text: &str) -> Result<ArrivalsArg, String> {
    let model = match text.split_once(':') {
        None if text == "constant" => Some(Arrivals::Constant),
        None if text == "poisson" => Some(Arrivals::Poisson),
        Some(("burst", size)) => match size.parse() {
            Ok(size @ 1..) => Some(Arrivals::Burst(size)),
            _ => None,
        },
        Some(("poisson+burst", both)) => poisson_bursts(both),
        _ => None,
    };
    let model = model.ok_or(
        "give constant, poisson, burst:N, or poisson+burst:N/K (each Kth arrival is N packets), \
         with N and K from 1 on",
    )?;
    Ok(ArrivalsArg(model))
}

fn poisson_bursts(text: &str) -> Option<Arrivals> {
    let (size, every) = text.split_once('/')?;
    match (size.parse().ok()?, every.parse().ok()?) {
        (size @ 1.., every @ 1..) => Some(Arrivals::PoissonBursts { size, every }),
        _ => None,
    }
}

fn scatter(text: &str) -> Result<Scatter, String> {
    let parsed = text.split_once('/').and_then(|(last, of)| {
        let (last, of) = (last.parse().ok()?, of.parse().ok()?);
        (1 <= last && last < of).then_some(Scatter { last, of })
    });
    parsed.ok_or_else(|| "give N/K with N from 1 on and below K".into())
}

fn zipf(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(s) if (0.0..=10.0).contains(&s) => Ok(s),
        _ => Err("give a number from 0 (all the same) to 10".into()),
    }
}

fn lost_after(text: &str) -> Result<Duration, String> {
    let time = parse_time(text).map_err(|why| why.to_string())?;
    let longest = Duration::from_secs(60);
    if time.is_zero() || time > longest {
        Err("give a time above 0 and up to 60s".into())
    } else {
        Ok(time)
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err("give a number from 0 to below 100".into()),
    }
}

fn resolution(text: &str) -> Result<f64, String> {
    match percent(text)? {
        percent if percent >= 0.01 => Ok(percent),
        _ => Err("give 0.01 or more: a trial cannot tell closer rates apart".into()),
    }
}
