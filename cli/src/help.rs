//! The first screen: examples, then the commands by what they are for.
#[cfg(test)]
mod page;

use clap::CommandFactory;

pub(crate) const ABOUT: &str = "Measure chosen functions of a running, unmodified process";
pub(crate) const LONG: &str = "Measure chosen functions of a running, unmodified process.

hopscope makes a copy of each chosen function, with a probe at its entry and at each exit. It
patches the entry of each original with a 5-byte jmp to the copy, and restores the original bytes
when it detaches: no rebuild, no restart, tens of TSC ticks per call.

Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 check failed, 2 usage or
environment error; with `-- COMMAND` the exit code of the command, or 125 for a failure of
hopscope itself.";

const GROUPS: &[(&str, &[&str])] = &[
    (
        "Measure",
        &["record", "slice", "top", "functions", "detach", "check"],
    ),
    ("Analyze", &["report", "diff", "export", "info"]),
    ("Fast paths", &["splice", "vnet", "stack"]),
    ("Load", &["load", "bench"]),
];

/// Shown first: the first of each command on the first screen, all of them in its own help.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "check",
        &[
            "hopscope check",
            "hopscope check --json | jq 'select(.state != \"ok\")'",
            "hopscope check splice",
        ],
    ),
    (
        "functions",
        &[
            "hopscope functions -p 1234 -f 'acl_*'",
            "hopscope functions -b /usr/sbin/nginx --json",
        ],
    ),
    (
        "record",
        &[
            "hopscope record -p 1234 -f 'acl_*' -d 5s",
            "hopscope record -p 1234 -f 'acl_in(frame->n, frame->pkts[0..n].seq, return)'",
            "hopscope record -p 1234 -f 'acl_*' --flight 5s --trigger 'acl_in > 50us' --trigger SIGUSR1",
            "hopscope record -p 1234 -f 'acl_*' --root acl_in --every 100",
            "hopscope record --comm nginx -f 'nginx!ngx_http_*' -o nginx.hop",
            "hopscope record -f '/^md5_/' -- openssl speed md5",
        ],
    ),
    (
        "slice",
        &[
            "hopscope slice -r slices.hop tcp port 80",
            "hopscope slice -r slices.pcapng --min-latency 200us -v",
            "hopscope slice -i eth0 -c 100 tcp port 80",
            "hopscope slice -w slices.pcapng -- curl http://10.0.0.2/",
        ],
    ),
    (
        "top",
        &[
            "hopscope top -p 1234 -f 'acl_*'",
            "hopscope top -p 1234 -f 'acl_*' --raw --json -d 10s",
        ],
    ),
    (
        "detach",
        &[
            "hopscope detach -p 1234",
            "hopscope detach --all -o salvaged.hop",
        ],
    ),
    (
        "report",
        &[
            "hopscope report hopscope.hop",
            "hopscope report hopscope.hop --by tree",
            "hopscope report hopscope.hop --by run --root pipeline_run",
            "hopscope report hopscope.hop --by packet --packets packets.hop",
            "hopscope report hopscope.hop --html report.html",
        ],
    ),
    (
        "diff",
        &[
            "hopscope diff before.hop after.hop",
            "hopscope diff before.hop after.hop --by module --fail-above 10",
        ],
    ),
    (
        "export",
        &[
            "hopscope export hopscope.hop --format folded -o calls.folded",
            "hopscope export hopscope.hop --format parquet -o calls.parquet",
            "hopscope export hopscope.hop --format csv --what functions",
        ],
    ),
    ("info", &["hopscope info hopscope.hop"]),
    (
        "vnet",
        &[
            "hopscope vnet sim",
            "hopscope vnet sim --kick-policy adaptive --kick-policy ahc:25:64 --load 0.5 --json",
        ],
    ),
    (
        "stack",
        &[
            "hopscope stack serve --if veth1 --addr 10.0.0.2/24 --app http:600 --port 80",
            "hopscope stack serve --if tap:tap0 --addr 10.0.0.2/24 --addr fd00::2/64 --app echo",
            "hopscope stack connect 10.0.0.1:7000 --if veth1 --addr 10.0.0.2/24 --app echo -d 10s",
            "hopscope stack run --if veth1 --addr 10.0.0.2/24 -- curl http://10.0.0.1/",
            "hopscope stack ss",
            "hopscope stack stats --interval 1s",
        ],
    ),
    (
        "load",
        &[
            "hopscope load tcp rr 10.0.0.2:7000 --rate 10k -n 100 -d 10s",
            "hopscope load tcp serve --listen 0.0.0.0:7000 --threads 2",
            "hopscope load tcp echo --serve-here",
            "hopscope load udp rr 10.0.0.2:7000 --closed --json",
            "hopscope load ping 10.0.0.2 -i 10ms -c 1000",
            "hopscope load packets --tx packet:veth0 --rx packet:veth1 --rate 100k -d 10s",
        ],
    ),
    (
        "splice",
        &[
            "hopscope splice run --with /sys/fs/cgroup/redis -- redis-benchmark -t get",
            "hopscope splice attach --cgroup /sys/fs/cgroup/shop --port 6379 --port 5432",
            "hopscope splice stat",
            "hopscope splice proxy --listen '[::]:6380' --to 127.0.0.1:6379",
        ],
    ),
    ("bench", &["hopscope bench probe --quick"]),
];

/// The command line with its subcommands in groups, made from those that exist.
pub(crate) fn command<C: CommandFactory>() -> clap::Command {
    let command = C::command();
    let exists = |name: &&str| command.find_subcommand(name).is_some();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let names: Vec<&&str> = names.iter().filter(|name| exists(name)).collect();
        if names.is_empty() {
            continue;
        }
        groups += &format!("{title}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(|c| c.get_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups += &format!("  {name:<10} {about}\n");
        }
        groups.push('\n');
    }
    let known = || EXAMPLES.iter().filter(|(name, _)| exists(name));
    let first: Vec<&str> = known().map(|(_, lines)| lines[0]).collect();
    let first_screen = examples(&first);
    let own: Vec<_> = known().copied().collect();
    let template = format!(
        "{first_screen}\n{{about-with-newline}}\nUsage: {{usage}}\n\n{groups}Options:\n{{options}}"
    );
    own.into_iter()
        .fold(command, |command, (name, lines)| {
            command.mut_subcommand(name, |sub| sub.before_help(examples(lines)))
        })
        .help_template(template)
}

/// Those of a subcommand, for the name that it has by itself.
pub(crate) fn examples_as(subcommand: &str, name: &str) -> String {
    let known = EXAMPLES.iter().find(|(of, _)| *of == subcommand);
    let lines = known.map_or(&[][..], |(_, lines)| lines);
    examples(lines).replace(&format!("hopscope {subcommand}"), name)
}

fn examples(lines: &[&str]) -> String {
    format!("EXAMPLES:\n  {}\n", lines.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_is_in_one_group() {
        let command = command::<crate::Cli>();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let name = sub.get_name();
            let count = GROUPS
                .iter()
                .filter(|(_, names)| names.contains(&name))
                .count();
            assert_eq!(count, 1, "{name}");
        }
    }

    /// Split as a shell would, as far as the examples need it.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" | ").next().unwrap_or(line);
        let mut words = vec![String::new()];
        for (n, part) in line.split('\'').enumerate() {
            for (k, word) in part.split(' ').enumerate() {
                match (n % 2, k, words.last_mut()) {
                    // Within quotes a space is a space.
                    (1, 1.., Some(last)) => *last += &format!(" {word}"),
                    (_, 0, Some(last)) => *last += word,
                    _ => words.push(word.to_owned()),
                }
            }
        }
        words
    }

    #[test]
    fn every_example_is_accepted() {
        let command = command::<crate::Cli>();
        for (name, lines) in EXAMPLES {
            if command.find_subcommand(name).is_none() {
                continue;
            }
            for line in *lines {
                let parsed = command.clone().try_get_matches_from(words(line));
                assert!(parsed.is_ok(), "{line}: {parsed:?}");
            }
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        command::<crate::Cli>().debug_assert();
    }
}
