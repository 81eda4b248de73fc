//! docs/commands.md: every command with its options, generated from the flag tables. `GOLDEN=write cargo test -p
//! hopscope the_page` writes it anew.
use clap::{Arg, Command};
use std::fmt::Write;

const HEAD: &str = "# Commands

Generated from the flag tables. `hopscope COMMAND --help` prints the same for your version.
";

fn page(command: &Command) -> String {
    let mut page = HEAD.to_owned();
    let global = |arg: &&Arg| arg.is_global_set();
    page += "\nEvery command also takes:\n\n";
    options(&mut page, command.get_arguments().filter(global));
    for sub in shown(command) {
        section(&mut page, sub, "hopscope");
    }
    page
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn section(page: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let about = text(command.get_about().map(ToString::to_string));
    let _ = write!(page, "\n## {name}\n{about}\n");
    let own = |arg: &&Arg| !arg.is_global_set() && !arg.is_hide_set();
    if command.get_arguments().any(|arg| own(&arg)) {
        page.push('\n');
        options(page, command.get_arguments().filter(own));
    }
    for sub in shown(command) {
        section(page, sub, &name);
    }
}

fn options<'a>(page: &mut String, args: impl Iterator<Item = &'a Arg>) {
    page.push_str("| option | what it does |\n|---|---|\n");
    for arg in args.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version")) {
        let short = text(arg.get_help().map(ToString::to_string));
        let mut what = short.clone();
        let values = arg.get_possible_values();
        let is_flag = !arg.get_action().takes_values();
        if !is_flag && values.iter().any(|value| !value.is_hide_set()) {
            let names: Vec<_> = values
                .iter()
                .map(clap::builder::PossibleValue::get_name)
                .collect();
            let _ = write!(what, " ({})", names.join(", "));
        }
        let defaults = arg.get_default_values();
        if !is_flag && !arg.is_hide_default_value_set() && !defaults.is_empty() {
            let defaults: Vec<_> = defaults.iter().map(|d| d.to_string_lossy()).collect();
            let _ = write!(what, "; default {}", defaults.join(" "));
        }
        // Of the long help what the short one lacks: its further paragraphs.
        let long = text(arg.get_long_help().map(ToString::to_string));
        if let Some(more) = long.strip_prefix(&short).filter(|more| !more.is_empty()) {
            let _ = write!(what, ".{}", more.trim_end_matches('.'));
        }
        let _ = writeln!(page, "| `{}` | {what} |", spelled(arg));
    }
}

/// `-p, --pid <PID>`; what is given without a name as its value alone.
fn spelled(arg: &Arg) -> String {
    let short = arg.get_short().map(|c| format!("-{c}"));
    let long = arg.get_long().map(|name| format!("--{name}"));
    let mut words: Vec<String> = short.into_iter().chain(long).collect();
    let names = words.join(", ");
    words.clear();
    if !names.is_empty() {
        words.push(names);
    }
    if arg.get_action().takes_values() {
        let values = arg.get_value_names().unwrap_or_default();
        words.extend(values.iter().map(|value| format!("<{value}>")));
        if arg.is_positional() && values.is_empty() {
            words.push(format!("<{}>", arg.get_id().as_str().to_uppercase()));
        }
    }
    words.join(" ").replace('|', "\\|")
}

/// On one line of a table.
fn text(help: Option<String>) -> String {
    let text = help.unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

#[test]
fn the_page_of_commands_is_up_to_date() {
    let mut command = super::command::<crate::Cli>();
    command.build();
    let page = page(&command);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/commands.md");
    if std::env::var_os("GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(path, &page).expect("docs/ is writable");
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    let differs = page
        .lines()
        .zip(there.lines())
        .find(|(new, old)| new != old);
    assert!(
        page == there,
        "docs/commands.md is out of date (GOLDEN=write updates it): {differs:?}"
    );
}
