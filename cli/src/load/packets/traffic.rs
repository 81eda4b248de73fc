//! From the options to what is sent.
use super::args::PacketsArgs;
use anyhow::{Context, bail};
use hopscope_load::packets::captured;
use hopscope_load::packets::flow::{Flow, FlowTable, numbered};
use hopscope_load::packets::frame::Frames;
use hopscope_load::packets::link::link;
use hopscope_load::packets::plan::Traffic;
use hopscope_load::packets::ports::Opened;
use hopscope_load::packets::rules::{self, RuleSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

pub(super) fn rules(args: &PacketsArgs) -> anyhow::Result<Option<RuleSet>> {
    let Some(rules) = &args.rules else {
        return Ok(None);
    };
    match rules.parse::<usize>() {
        Ok(count) if (1..=rules::MOST).contains(&count) => {
            Ok(Some(rules::generate(count, args.seed)))
        }
        Ok(count) => bail!(
            "--rules {count}: give 1 to {} rules, or a file",
            rules::MOST
        ),
        Err(_) => Ok(Some(rules::read(Path::new(rules))?)),
    }
}

pub(super) fn write_rules(path: &Path, rules: &RuleSet) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::new(file);
    write!(out, "{rules}")
        .and_then(|()| out.flush())
        .with_context(|| format!("writing {}", path.display()))
}

pub(super) fn build(
    args: &PacketsArgs,
    rules: Option<RuleSet>,
    ports: &mut Opened,
) -> anyhow::Result<Traffic> {
    if let Some(path) = &args.replay {
        return Ok(captured::read(path, ports.max_frame_len())?);
    }
    let flows = match &rules {
        Some(rules) => {
            let hits = rules.hits(args.seed);
            let (hidden, unsupported) = (hits.hidden.len(), hits.unsupported.len());
            if hits.flows.is_empty() {
                bail!(
                    "no packet was found that hits any of these {} rules",
                    rules.0.len()
                );
            }
            if hidden + unsupported > 0 {
                crate::status::say!(
                    "of {} rules, {hidden} are hidden by earlier ones and {unsupported} are of other protocols: no packet is sent for these",
                    rules.0.len()
                );
            }
            hits.flows
                .into_iter()
                .map(|(_, flow)| flow)
                .collect::<Vec<_>>()
        }
        None => numbered(first_flow(args)?, args.flows),
    };
    let destination = flows[0].destination;
    let Some(table) = FlowTable::new(&flows) else {
        bail!("--src and --dst are not of one IP version");
    };
    let link = link(
        args.tx.as_ref(),
        args.rx.as_ref(),
        args.src_mac,
        args.dst_mac,
        destination,
    )?;
    let frames = Frames::new(table, &args.size, link, ports.max_frame_len())?;
    Ok(Traffic::Generated {
        frames: Arc::new(frames),
        sizes: args.size.clone(),
        link,
        locality: args.slf,
        scatter: args.scatter,
        zipf: args.zipf,
    })
}

/// Defaults are of the networks that benchmarks own (RFC 2544, C.2.2; RFC 5180, 8).
fn first_flow(args: &PacketsArgs) -> anyhow::Result<Flow> {
    let ipv6 = args.ipv6 || args.src.or(args.dst).is_some_and(|ip| ip.is_ipv6());
    let (source, destination): (IpAddr, IpAddr) = if ipv6 {
        (
            Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1).into(),
            Ipv6Addr::new(0x2001, 2, 0, 0xffff, 0, 0, 0, 1).into(),
        )
    } else {
        (
            Ipv4Addr::new(198, 18, 0, 1).into(),
            Ipv4Addr::new(198, 19, 0, 1).into(),
        )
    };
    Ok(Flow {
        protocol: args.protocol,
        source: args.src.unwrap_or(source),
        destination: args.dst.unwrap_or(destination),
        source_port: args.sport,
        destination_port: args.dport,
    })
}

/// For people, and for recordings.
pub(super) fn describe(args: &PacketsArgs, traffic: &Traffic) -> String {
    match traffic {
        Traffic::Replay { capture, .. } => {
            let name = args.replay.as_deref().unwrap_or(Path::new("")).display();
            let repeated = match capture.repeated() {
                0 => String::new(),
                repeated => format!(", {repeated} with the same content as another"),
            };
            format!("{} frames of {name}{repeated}", capture.len())
        }
        Traffic::Generated { frames, .. } => {
            let family = frames.layouts()[0].family;
            let what = match &args.rules {
                Some(_) => "packets to rules".to_string(),
                None => args.protocol.to_string(),
            };
            let zipf = args.zipf.map_or(String::new(), |s| format!(" (Zipf {s})"));
            let slf = if args.slf > 1 {
                format!(", SLF {}", args.slf)
            } else {
                String::new()
            };
            let flows = match frames.flows().len() {
                1 => "1 flow".to_string(),
                n => format!("{n} flows"),
            };
            format!(
                "{} {what} over {family}, {flows}{zipf}{slf}",
                args.size.describe()
            )
        }
    }
}
