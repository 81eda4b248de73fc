//! wrk, as the client of servers on either stack.
use super::network::client_in;
use crate::error::{Error, Result};
use crate::load::network::Namespace;
use crate::program::run_as;

/// Opening so many takes seconds of the window, and some of them time out.
pub(crate) const MANY: u32 = 9_000;

/// What it is to ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    connections: u32,
    seconds: u64,
    /// Each request has a connection of its own.
    closes: bool,
}

/// What it found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    pub(crate) requests: f64,
    pub(crate) per_s: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Asked {
    pub(crate) fn new(connections: u32, seconds: u64) -> Asked {
        Asked {
            connections,
            seconds,
            closes: false,
        }
    }

    pub(crate) fn closing(self) -> Asked {
        Asked {
            closes: true,
            ..self
        }
    }

    /// Asks the server at `host`.
    pub(crate) fn of(self, namespace: &Namespace, host: &str, port: &str) -> Result<Found> {
        let connections = self.connections;
        let mut command = client_in(namespace, "wrk");
        command.args(["-t1", &format!("-c{connections}"), "-d"]);
        command.args([&self.seconds.to_string(), "--latency"]);
        if self.closes {
            command.args(["-H", "Connection: close"]);
        }
        command.arg(format!("http://{host}:{port}/"));
        let text = run_as("wrk", &mut command)?;
        let errors = line(&text, "Socket errors:").unwrap_or_default();
        let is_bad = self.is_bad(errors) && connections < MANY;
        if is_bad || text.contains("Non-2xx") {
            let what = format!("wrk -c{connections} against {host}");
            return Err(Error::failed(what, "errors", errors));
        }
        match read(&text)? {
            found if found.requests > 0.0 => Ok(found),
            _ => Err(Error::Nothing {
                what: "wrk, not one request",
            }),
        }
    }
    /// `connect 0, read 0, write 0, timeout 0`: that a server closes a connection is to wrk an error in reading, some of the time.
    fn is_bad(self, errors: &str) -> bool {
        let counts = errors.split(", ").filter_map(|one| one.split_once(' '));
        let mut bad =
            counts.filter(|(what, count)| *count != "0" && !(self.closes && *what == "read"));
        bad.next().is_some()
    }
}

fn read(text: &str) -> Result<Found> {
    let of = |name: &str| line(text, name).ok_or_else(|| Error::no_field("wrk", name, text));
    let number = |name: &str| Ok::<f64, Error>(of(name)?.parse().unwrap_or(f64::NAN));
    let us = |name: &str| Ok::<f64, Error>(duration_us(of(name)?).unwrap_or(f64::NAN));
    let mut counted = text
        .lines()
        .filter_map(|line| line.split_once(" requests in "));
    let requests = counted.next().and_then(|(n, _)| n.trim().parse().ok());
    Ok(Found {
        requests: requests.ok_or_else(|| Error::no_field("wrk", "requests in", text))?,
        per_s: number("Requests/sec:")?,
        p50_us: us("50%")?,
        p99_us: us("99%")?,
    })
}

/// What follows `name` on its line.
fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().map(str::trim_start);
    lines.find_map(|line| Some(line.strip_prefix(name)?.trim()))
}

/// `35.00us`, `1.20ms`, `2.00s`.
fn duration_us(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    units.iter().find_map(|(unit, us)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * us)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_wrk() {
        assert_eq!(duration_us("35.00us"), Some(35.0));
        assert_eq!(duration_us("1.50ms"), Some(1500.0));
        assert_eq!(duration_us("2.00s"), Some(2e6));
        assert_eq!(duration_us("none"), None);
    }

    #[test]
    fn errors_of_closed_connections_are_none() {
        let kept = Asked::new(1, 1);
        let is_bad = |errors| [kept, kept.closing()].map(|asked| asked.is_bad(errors));
        assert_eq!(is_bad(""), [false, false]);
        assert_eq!(
            is_bad("connect 0, read 7, write 0, timeout 0"),
            [true, false]
        );
        assert_eq!(
            is_bad("connect 2, read 7, write 0, timeout 0"),
            [true, true]
        );
        assert_eq!(
            is_bad("connect 0, read 0, write 0, timeout 1"),
            [true, true]
        );
    }

    #[test]
    fn what_wrk_prints() {
        let text = "Running 1s test @ http://10.0.0.2:80/\n  1 threads and 64 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency   510.00us  120.00us   4.00ms   90.00%\n  Latency Distribution\n     50%  500.00us\n     75%  550.00us\n     90%  600.00us\n     99%    1.00ms\n  120000 requests in 1.00s, 80.00MB read\nRequests/sec: 119000.50\nTransfer/sec: 79.00MB\n";
        let found = Found {
            requests: 120_000.0,
            per_s: 119_000.5,
            p50_us: 500.0,
            p99_us: 1_000.0,
        };
        assert_eq!(read(text).unwrap(), found);
        assert!(read("nothing").is_err());
    }
}
