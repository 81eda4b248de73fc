//! Log lines on stderr: warnings unless asked otherwise.
use hopscope_event::Printable;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

#[derive(clap::Args)]
pub(crate) struct Verbosity {
    /// Print more on stderr (-vv: everything)
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Suppress warnings and progress on stderr; results, notices and errors remain
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Colour messages on stderr; NO_COLOR disables colours too
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

impl Verbosity {
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose > 0
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

struct StderrLogger {
    colored: bool,
}

static LOGGER: OnceLock<StderrLogger> = OnceLock::new();

pub(crate) fn start(verbosity: &Verbosity) {
    let level = match (verbosity.quiet, verbosity.verbose) {
        (true, _) => LevelFilter::Error,
        (false, 0) => LevelFilter::Warn,
        (false, 1) => LevelFilter::Info,
        (false, _) => LevelFilter::Trace,
    };
    // An empty NO_COLOR does not count (no-color.org).
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colored = match verbosity.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => std::io::stderr().is_terminal() && !unwanted,
    };
    let logger = LOGGER.get_or_init(|| StderrLogger { colored });
    log::set_logger(logger).expect("the only logger of the process");
    log::set_max_level(level);
}

impl Log for StderrLogger {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        let (word, paint) = match record.level() {
            Level::Error => ("error", "31"),
            Level::Warn => ("warning", "33"),
            Level::Info => ("info", "32"),
            Level::Debug => ("debug", "36"),
            Level::Trace => ("trace", "90"),
        };
        let words = record.args().to_string();
        let words = Printable::new(&words);
        // In one write: nobody else's words come between.
        let line = if self.colored {
            format!("hopscope: \x1b[{paint}m{word}\x1b[0m: {words}\n")
        } else {
            format!("hopscope: {word}: {words}\n")
        };
        // A closed stderr must not end a measurement.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}
