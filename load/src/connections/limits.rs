//! Limits of the machine, looked at before a run and not in the middle of it.
use super::LoadError;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
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
    match connections > ports * sources {
        true => Err(LoadError::Ports {
            wanted: connections,
            ports,
            sources,
        }),
        false => Ok(ports),
    }
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
