//! Limits of the machine, looked at before a run and not in the middle of it.
use super::LoadError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;
use std::ops::RangeInclusive;

/// What was found and done about `RLIMIT_NOFILE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptors {
    Enough,
    /// The soft limit was too low and is raised, for this process only.
    Raised {
        from: u64,
        to: u64,
    },
}

/// Makes room for `connections` sockets beside `other` descriptors.
///
/// # Errors
/// Where the hard limit does not allow it.
pub fn descriptors_for(connections: usize, other: usize) -> Result<Descriptors, LoadError> {
    let wanted = connections as u64 + other as u64;
    let read = LoadError::system("cannot read the limit of file descriptors");
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(read)?;
    if wanted <= soft {
        return Ok(Descriptors::Enough);
    }
    if wanted > hard {
        return Err(LoadError::Descriptors { wanted, hard });
    }
    let raise = LoadError::system("cannot raise the limit of file descriptors");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(raise)?;
    Ok(Descriptors::Raised {
        from: soft,
        to: hard,
    })
}

/// Takes as many file descriptors as this process may have; gives that number.
pub(super) fn take_all_descriptors() -> Result<u64, LoadError> {
    let failed = LoadError::system("cannot raise the limit of file descriptors");
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(&failed)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(&failed)?;
    }
    Ok(hard)
}

/// Checks that `connections` at a time find ports; gives the number of ports of each source.
///
/// # Errors
/// Where they do not.
pub fn ports_for(connections: usize, sources: usize) -> Result<usize, LoadError> {
    let ports = local_ports().count();
    let sources = sources.max(1);
    if connections > ports * sources {
        Err(LoadError::Ports {
            wanted: connections,
            ports,
            sources,
        })
    } else {
        Ok(ports)
    }
}

/// Local ports that wait in TIME_WAIT, and those that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimeWait {
    pub ports: u64,
    pub of: u64,
}

impl TimeWait {
    /// As they are now in this network namespace, for connections from so many addresses; `None` where it does not say.
    pub(super) fn now(sources: usize) -> Option<TimeWait> {
        let text = std::fs::read_to_string("/proc/thread-self/net/sockstat").ok()?;
        Some(TimeWait {
            ports: in_time_wait(&text)?,
            of: (local_ports().count() * sources.max(1)) as u64,
        })
    }

    /// From here on `connect` looks at many ports before it finds a free one.
    pub(super) fn is_much(self) -> bool {
        self.ports >= self.of / 2
    }
}

/// `TCP: inuse 5 orphan 0 tw 28 alloc 7 mem 3`
fn in_time_wait(sockstat: &str) -> Option<u64> {
    let line = sockstat
        .lines()
        .find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

/// Of this network namespace; the kernel's default where it cannot be read.
fn local_ports() -> RangeInclusive<u16> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let text = text.unwrap_or_default();
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(low)), Some(Ok(high))) => low..=high,
        _ => 32768..=60999,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_time_wait_are_counted() {
        let text =
            "sockets: used 9\nTCP: inuse 5 orphan 0 tw 28 alloc 7 mem 3\nUDP: inuse 1 mem 0\n";
        assert_eq!(in_time_wait(text), Some(28));
        assert_eq!(in_time_wait("TCP: inuse 5\n"), None);
        assert!(TimeWait::now(1).is_some_and(|now| now.of > 0));
        let of = 100;
        assert!(TimeWait { ports: 50, of }.is_much() && !TimeWait { ports: 49, of }.is_much());
    }

    #[test]
    fn what_cannot_be_is_refused_before_the_run() {
        let many = descriptors_for(usize::MAX / 2, 1);
        assert!(
            matches!(many, Err(LoadError::Descriptors { .. })),
            "{many:?}"
        );
        let ports = local_ports().count();
        assert!(ports_for(ports, 1).is_ok());
        assert!(matches!(
            ports_for(ports + 1, 1),
            Err(LoadError::Ports { .. })
        ));
        assert!(ports_for(ports + 1, 2).is_ok());
    }
}
