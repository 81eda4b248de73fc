//! What the guest's shell is told. Each server has a port of its own, and all stay up.
use super::{BACKLOG, CLIENTS, GuestPlan, KINDS, LOADS, SIZE, ServerKind};
use std::fmt::Write;

const FIRST_PORT: usize = 7100;

fn port(kind: ServerKind) -> usize {
    let at = KINDS.iter().position(|one| *one == kind);
    FIRST_PORT + at.unwrap_or(KINDS.len())
}

pub(super) fn servers() -> String {
    let mut script = String::from(". /servers.sh\n");
    for kind in KINDS {
        let (name, port) = (kind.name(), port(kind));
        let start = match kind {
            ServerKind::Module => {
                format!(
                    "insmod /hop_echo.ko port={port} backlog={BACKLOG} 2> /tmp/err-{name} || {{ down {name}; false; }}"
                )
            }
            _ => format!(
                "up {name} hopscope -q splice echo {} --listen 127.0.0.1:{port} --backlog {BACKLOG}",
                kind.words().join(" ")
            ),
        };
        let accelerate = kind.accelerator().map_or(String::new(), |more| {
            format!(
                " && rm /tmp/ready-{name} && up {name} hopscope -q splice attach --yes --blocking --cgroup \
                 /sys/fs/cgroup --port {port} {}",
                more.join(" ")
            )
        });
        let _ = writeln!(
            script,
            "{start}{accelerate} && {{ > /tmp/is-up-{name}; echo up {name}; }}"
        );
    }
    script.push_str("true\n");
    script
}

/// Every server under every load, in an order that changes from round to round.
pub(super) fn round(round: usize, plan: &GuestPlan) -> String {
    let mut script = String::from(". /servers.sh\n");
    let kinds = || (0..KINDS.len()).map(|at| KINDS[(at + round) % KINDS.len()]);
    let mut line = |kind: ServerKind, what: &str, rest: String| {
        let (name, port) = (kind.name(), port(kind));
        let _ = writeln!(
            script,
            "[ -e /tmp/is-up-{name} ] && {what} {name} {port} {rest}"
        );
    };
    for load in LOADS {
        for kind in kinds() {
            let (connections, size) = (load.connections, load.size);
            line(
                kind,
                "stand",
                format!("{connections} {size} {}", plan.milliseconds),
            );
        }
    }
    for kind in kinds().filter(|_| round < plan.releases) {
        line(kind, "release", format!("{CLIENTS} {SIZE}"));
    }
    script.push_str("true\n");
    script
}

/// The module's last words are how many connections it had, and has.
pub(super) const END: &str = "for pid in $(cat /tmp/pids); do kill -INT $pid; done
[ ! -e /tmp/is-up-module ] || { rmmod hop_echo && dmesg | grep 'hop_echo: .* left$'; }";

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: GuestPlan = GuestPlan {
        rounds: 6,
        releases: 1,
        milliseconds: 1,
    };

    #[test]
    fn each_server_has_each_place_once() {
        let first = |number: usize| {
            let text = round(number, &PLAN);
            let line = text.lines().find(|line| line.contains("stand")).unwrap();
            line.split(' ').nth(6).unwrap().to_owned()
        };
        let mut firsts: Vec<String> = (0..KINDS.len()).map(first).collect();
        assert_eq!(firsts[1], "module", "{firsts:?}");
        firsts.sort();
        let mut names: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        assert_eq!(firsts, names);
        let lines = |number| round(number, &PLAN).lines().count();
        assert_eq!(lines(0), 2 + KINDS.len() * (LOADS.len() + 1));
        assert_eq!(lines(1), 2 + KINDS.len() * LOADS.len());
    }
}
