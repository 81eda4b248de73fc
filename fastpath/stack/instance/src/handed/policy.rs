//! Which sockets are the stack's, where their addresses leave it open: rules, of which the first that fits decides.
//!
//! ```text
//! kernel  program=sshd
//! stack   connect address=10.0.0.0/8 port=80,443
//! kernel  connect
//! kernel  udp port=53
//! ```
use hopscope_stack_engine::SocketKind;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

/// Rules of one file, and its bytes: all of them are in what a process is handed.
pub const RULES_MAX: usize = 4_096;
pub const FILE_MAX: usize = 256 << 10;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Sockets on all addresses listen in the stack alone, not in the kernel, too.
    pub wildcard_is_stack: bool,
    pub rules: Vec<Rule>,
}

/// All that it names must fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub whose: Whose,
    /// The executable's file name, or its path.
    program: Option<String>,
    udp: Option<bool>,
    call: Option<Call>,
    /// The peer's, or of bind(2) the socket's own; bits of the prefix.
    address: Option<(IpAddr, u8)>,
    /// The same one's: ranges.
    ports: Vec<(u16, u16)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whose {
    Stack,
    Kernel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Or listen(2) on every address.
    Bind,
    /// Or a datagram to there.
    Connect,
}

/// A socket that gets its first address.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub kind: SocketKind,
    pub call: Call,
    pub at: SocketAddr,
}

impl Policy {
    /// `None`: no rule says anything.
    #[must_use]
    pub fn whose(&self, asked: Asked) -> Option<Whose> {
        self.deciding(asked).map(|rule| rule.whose)
    }

    /// The rule that decides is the stack's, and names addresses of loopback: others do not mean those.
    #[must_use]
    pub fn gives_loopback(&self, asked: Asked) -> bool {
        self.deciding(asked).is_some_and(|rule| {
            let named = rule.address.is_some_and(|(ip, _)| ip.is_loopback());
            named && rule.whose == Whose::Stack
        })
    }

    fn deciding(&self, asked: Asked) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.fits(asked))
    }

    #[must_use]
    pub fn names_programs(&self) -> bool {
        self.rules.iter().any(|rule| rule.program.is_some())
    }

    /// Programs that are named by a link are the files that it leads to.
    pub fn resolve(&mut self, resolved: impl Fn(&str) -> Option<String>) {
        for program in self
            .rules
            .iter_mut()
            .filter_map(|rule| rule.program.as_mut())
        {
            if let Some(path) = program.contains('/').then(|| resolved(program)).flatten() {
                *program = path;
            }
        }
    }

    /// Leaves out what is of other programs than the one in this file.
    pub fn keep_those_of(&mut self, executable: &Path) {
        self.rules.retain(|rule| rule.is_of(executable));
    }
}

impl Rule {
    /// Of a connection to this prefix.
    #[must_use]
    pub fn kernels(prefix: (IpAddr, u8)) -> Rule {
        Rule {
            call: Some(Call::Connect),
            address: Some(unmapped(prefix).unwrap_or(prefix)),
            ..Rule::of(Whose::Kernel)
        }
    }

    fn of(whose: Whose) -> Rule {
        Rule {
            whose,
            program: None,
            udp: None,
            call: None,
            address: None,
            ports: Vec::new(),
        }
    }

    fn is_of(&self, executable: &Path) -> bool {
        let Some(program) = &self.program else {
            return true;
        };
        match program.contains('/') {
            true => executable == Path::new(program),
            false => executable
                .file_name()
                .is_some_and(|name| name == program.as_str()),
        }
    }

    fn fits(&self, asked: Asked) -> bool {
        let udp = asked.kind == SocketKind::Udp;
        let within = |(prefix, bits): (IpAddr, u8)| is_within(asked.at.ip(), prefix, bits);
        let port = asked.at.port();
        let named = |(first, last): &(u16, u16)| (*first..=*last).contains(&port);
        self.udp.is_none_or(|wanted| wanted == udp)
            && self.call.is_none_or(|call| call == asked.call)
            && self.address.is_none_or(within)
            && (self.ports.is_empty() || self.ports.iter().any(named))
    }

    /// One word behind the first.
    fn add(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let is_given = match name {
            "tcp" | "udp" => self.udp.replace(name == "udp").is_some(),
            "bind" => self.call.replace(Call::Bind).is_some(),
            "connect" => self.call.replace(Call::Connect).is_some(),
            "program" => self.program.replace(value.to_owned()).is_some(),
            "address" => self.address.replace(prefix(value)?).is_some(),
            "port" => !std::mem::replace(&mut self.ports, ports(value)?).is_empty(),
            _ => false,
        };
        let is_flag = ["tcp", "udp", "bind", "connect"].contains(&name);
        let is_named = ["program", "address", "port"].contains(&name) && !value.is_empty();
        match word.contains('=') {
            _ if is_given => Err(format!("{name}: a second one")),
            true if is_named => Ok(()),
            false if is_flag => Ok(()),
            _ => Err(format!(
                "{word}: expected program=NAME, address=IP/LEN, port=N,N-N, tcp, udp, bind or connect"
            )),
        }
    }
}

fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let bad = || format!("{text}: no address, and no prefix IP/LEN");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| bad())?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| bad())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits
        .filter(|bits| *bits <= most)
        .or(bits.is_none().then_some(most));
    let bits = bits.ok_or_else(bad)?;
    unmapped((address, bits)).ok_or_else(bad)
}

/// Addresses are compared as those of IPv4 where they are mapped (`::ffff:0:0/96`). `None`: a part of those, and others.
fn unmapped((address, bits): (IpAddr, u8)) -> Option<(IpAddr, u8)> {
    match address.to_canonical() {
        v4 @ IpAddr::V4(_) if address.is_ipv6() => Some((v4, bits.checked_sub(96)?)),
        address => Some((address, bits)),
    }
}

fn ports(text: &str) -> Result<Vec<(u16, u16)>, String> {
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u16>().ok()).flatten()
    };
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = (number(first)?, number(last)?);
        (range.0 <= range.1).then_some(range)
    };
    let found: Option<Vec<_>> = text.split(',').map(range).collect();
    found.ok_or_else(|| format!("port={text}: no ports, as 80,8000-8099"))
}

/// A line of a file.
impl FromStr for Rule {
    type Err = String;

    fn from_str(line: &str) -> Result<Rule, String> {
        let mut words = line.split_whitespace();
        let mut rule = match words.next() {
            Some("stack") => Rule::of(Whose::Stack),
            Some("kernel") => Rule::of(Whose::Kernel),
            other => {
                let other = other.unwrap_or_default();
                return Err(format!("{other}: a rule begins with stack or kernel"));
            }
        };
        let mut words = words.take_while(|word| !word.starts_with('#'));
        words.try_for_each(|word| rule.add(word))?;
        Ok(rule)
    }
}

/// The rules of a file: one a line; a word that begins with `#` begins a comment.
///
/// # Errors
/// The line's number, and what is wrong with it.
pub fn rules(text: &str) -> Result<Vec<Rule>, String> {
    let lines = text.lines().enumerate();
    let lines = lines.map(|(n, line)| (n + 1, line.trim()));
    let rules: Result<Vec<Rule>, String> = lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(n, line)| line.parse().map_err(|why| format!("line {n}: {why}")))
        .collect();
    match rules? {
        rules if rules.len() > RULES_MAX => Err(format!("more than {RULES_MAX} rules")),
        rules => Ok(rules),
    }
}

#[must_use]
pub fn is_within(address: IpAddr, prefix: IpAddr, bits: u8) -> bool {
    let (address, prefix, len) = match (address.to_canonical(), prefix) {
        (IpAddr::V4(a), IpAddr::V4(p)) => (u128::from(a.to_bits()), u128::from(p.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(p)) => (a.to_bits(), p.to_bits(), 128),
        _ => return false,
    };
    let shift = u32::from(len - bits.min(len));
    address.checked_shr(shift).unwrap_or(0) == prefix.checked_shr(shift).unwrap_or(0)
}

#[cfg(test)]
mod tests;
