//! What a measurement says of itself, on stderr, and lines of text that hold names from elsewhere.
use hopscope_event::Printable;
use std::fmt::Arguments;
use std::io::{self, Write};

/// A line on stderr, as `format!` takes it: `hopscope: ` and what happened. Names in it come from
/// targets and files, so the line is shown as [`Printable`].
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::status::on_stderr(format_args!($($words)*)) };
}
pub use crate::say;

/// A line of text for people, as `writeln!` takes it; names in it are shown as [`Printable`].
#[macro_export]
macro_rules! text_line {
    ($out:expr, $($words:tt)*) => {{
        #[allow(unused_imports, reason = "some have it already")]
        use std::io::Write as _;
        $crate::status::line($out.by_ref(), format_args!($($words)*))
    }};
}
pub use crate::text_line;

/// A line of text on stdout, where a reader that went away must not stop what is done.
#[macro_export]
macro_rules! show {
    ($($words:tt)*) => {{
        let _ = $crate::status::line(&mut std::io::stdout(), format_args!($($words)*));
    }};
}
pub use crate::show;

pub fn on_stderr(words: Arguments<'_>) {
    // When stderr is gone there is nobody left to tell.
    let _ = line(&mut io::stderr(), format_args!("hopscope: {words}"));
}

/// One line of text, whatever the names in it hold, in one write: nobody else's words come between.
///
/// # Errors
/// Those of `out`.
pub fn line(out: &mut (impl Write + ?Sized), words: Arguments<'_>) -> io::Result<()> {
    let line = format!("{}\n", Printable::new(&words.to_string()));
    out.write_all(line.as_bytes())
}
