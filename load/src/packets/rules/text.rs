//! Rules as text.
use super::{MOST, PortRange, Prefix, Rule, RuleSet};
use crate::packets::PacketsError;
use std::fmt;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// # Errors
/// The file cannot be read, a line is no rule, or there are none or too many.
pub fn read(path: &Path) -> Result<RuleSet, PacketsError> {
    let text = fs::read_to_string(path).map_err(|source| PacketsError::File {
        path: path.to_owned(),
        source,
    })?;
    let set = parse(&text).map_err(|(line, reason)| PacketsError::Rule {
        path: path.to_owned(),
        line,
        reason,
    })?;
    let wrong = match set.0.len() {
        0 => Some("there is no rule in it".to_string()),
        n if n > MOST => Some(format!("{n} rules, at most {MOST} are taken")),
        _ => None,
    };
    match wrong {
        None => Ok(set),
        Some(reason) => Err(PacketsError::Rules {
            path: path.to_owned(),
            reason,
        }),
    }
}

/// The rules, or the line that is none and why.
pub(super) fn parse(text: &str) -> Result<RuleSet, (usize, &'static str)> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line.trim()));
    let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parsed = rules.map(|(number, line)| rule(line).map_err(|reason| (number, reason)));
    Ok(RuleSet(parsed.collect::<Result<_, _>>()?))
}

fn rule(line: &str) -> Result<Rule, &'static str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [
        verdict,
        protocol,
        source,
        source_ports,
        destination,
        destination_ports,
    ] = fields[..]
    else {
        return Err("six fields are needed");
    };
    Ok(Rule {
        permit: match verdict {
            "permit" => true,
            "deny" => false,
            _ => return Err("the verdict is permit or deny"),
        },
        protocol: match protocol {
            "any" => None,
            number => Some(
                number
                    .parse()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or("the protocol is a number from 1 to 255, or any")?,
            ),
        },
        source: prefix(source)?,
        source_ports: ports(source_ports)?,
        destination: prefix(destination)?,
        destination_ports: ports(destination_ports)?,
    })
}

fn prefix(text: &str) -> Result<Prefix, &'static str> {
    let parts = text.split_once('/').and_then(|(address, length)| {
        let address: Ipv4Addr = address.parse().ok()?;
        Some((address, length.parse::<u8>().ok().filter(|n| *n <= 32)?))
    });
    let (address, length) = parts.ok_or("a prefix is an IPv4 address, a slash and 0 to 32")?;
    Ok(Prefix::new(address.into(), length))
}

fn ports(text: &str) -> Result<PortRange, &'static str> {
    if text == "any" {
        return Ok(PortRange::ANY);
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(PortRange { first, last }),
        _ => Err("ports are any, one, or FIRST-LAST"),
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == PortRange::ANY {
            f.write_str("any")
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.address), self.length)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.permit { "permit" } else { "deny" })?;
        match self.protocol {
            Some(number) => write!(f, " {number}")?,
            None => f.write_str(" any")?,
        }
        write!(f, " {} {}", self.source, self.source_ports)?;
        write!(f, " {} {}", self.destination, self.destination_ports)
    }
}

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}
