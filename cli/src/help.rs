//! The first screen: examples, then the commands by what they are for.
use clap::CommandFactory;

pub(crate) const ABOUT: &str = "Time chosen functions of a running, unmodified process";
pub(crate) const LONG: &str = "Time chosen functions of a running, unmodified process.

hopscope copies the chosen functions with a probe at their entry and one at each exit, leads the
originals to the copies by one jump, and takes everything back when it leaves: no rebuild, no
restart, tens of time-stamp ticks a call.

Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 the asked condition did not
hold, 2 usage or environment; with `-- COMMAND` the command's own code, and 125 for a failure of
hopscope itself.";

const GROUPS: &[(&str, &[&str])] = &[
    ("Measure", &["record", "functions", "detach", "check"]),
    ("Explain", &["report", "info"]),
    ("Load", &["bench"]),
];

const EXAMPLES: &[(&str, &str)] = &[
    ("check", "hopscope check"),
    ("functions", "hopscope functions -p PID -f 'acl_*'"),
    ("record", "hopscope record -p PID -f 'acl_*' -d 5s"),
    ("report", "hopscope report hopscope.hop"),
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
    let mut examples = String::from("EXAMPLES:\n");
    for (_, line) in EXAMPLES.iter().filter(|(name, _)| exists(name)) {
        examples += &format!("  {line}\n");
    }
    let template = format!(
        "{examples}\n{{about-with-newline}}\nUsage: {{usage}}\n\n{groups}Options:\n{{options}}"
    );
    command.help_template(template)
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

    #[test]
    fn the_command_line_is_consistent() {
        command::<crate::Cli>().debug_assert();
    }
}
