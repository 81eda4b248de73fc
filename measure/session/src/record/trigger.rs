//! What `--trigger` takes.
use crate::error::Error;
use hopscope_analyze::{WindowError, parse_span_ns};
use hopscope_event::Ns;

/// Words that stand for no call.
pub(super) const SIGNAL: &str = "SIGUSR1";
pub(super) const EXIT: &str = "exit";
const PACKET: &str = "packet";

/// When a flight recorder saves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum When {
    /// A call of `FUNCTION` or `MODULE!FUNCTION` takes longer.
    Call { function: String, over: Ns },
    /// The run that handles a packet takes longer.
    Packet { over: Ns },
    /// The recorder gets SIGUSR1.
    Signal,
    /// The last target has exited.
    Exit,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum WhenError {
    #[error(
        "--trigger {0:?} is not a trigger; write 'FUNCTION > 50us', 'packet > 1ms', {SIGNAL} or {EXIT}"
    )]
    Shape(String),
    #[error("--trigger {text:?}: {error}")]
    Time { text: String, error: WindowError },
    #[error("--trigger {0:?}: only '>' is known, and a single one; write 'FUNCTION > 50us'")]
    Comparison(String),
    #[error(
        "--trigger {0:?}: {1:?} is not the name of one function; write it as hopscope functions does"
    )]
    Name(String, String),
}

impl From<WhenError> for Error {
    fn from(error: WhenError) -> Error {
        Error::refused(error.to_string())
    }
}

impl When {
    /// # Errors
    /// Everything that is not exactly one of the four.
    pub(super) fn parse(text: &str) -> Result<When, WhenError> {
        match text.trim() {
            SIGNAL => return Ok(When::Signal),
            EXIT => return Ok(When::Exit),
            _ => {}
        }
        let Some((what, than)) = text.rsplit_once('>') else {
            return Err(if text.contains(['<', '=']) {
                WhenError::Comparison(text.into())
            } else {
                WhenError::Shape(text.into())
            });
        };
        let (what, than) = (what.trim(), than.trim());
        if than.starts_with('=') || what.ends_with(['>', '<', '=', '-']) {
            return Err(WhenError::Comparison(text.into()));
        }
        if what.is_empty() || than.is_empty() {
            return Err(WhenError::Shape(text.into()));
        }
        // A bare number is seconds elsewhere; here it is more likely a slip.
        let has_unit = than.ends_with('s');
        let over = parse_span_ns(than);
        let over = over.and_then(|ns| {
            if has_unit {
                Ok(ns)
            } else {
                Err(WindowError::Syntax(than.into()))
            }
        });
        let over = over.map_err(|error| WhenError::Time {
            text: text.into(),
            error,
        })?;
        match what {
            PACKET => Ok(When::Packet { over }),
            // Of a C++ name the signature may have spaces and signs of its own.
            _ if what.contains(['*', '?']) && !what.contains('(') => {
                Err(WhenError::Name(text.into(), what.into()))
            }
            _ => Ok(When::Call {
                function: what.into(),
                over,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(function: &str, over: u64) -> Result<When, WhenError> {
        Ok(When::Call {
            function: function.into(),
            over: Ns(over),
        })
    }

    #[test]
    fn what_can_be_said() {
        assert_eq!(When::parse("acl_in > 50us"), call("acl_in", 50_000));
        assert_eq!(When::parse("acl_in>1.5ms"), call("acl_in", 1_500_000));
        assert_eq!(
            When::parse(" nf!acl_in > 2s "),
            call("nf!acl_in", 2_000_000_000)
        );
        let cxx = "std::vector<int>::push(int const*) > 9ns";
        assert_eq!(
            When::parse(cxx),
            call("std::vector<int>::push(int const*)", 9)
        );
        assert_eq!(
            When::parse("packet > 1ms"),
            Ok(When::Packet {
                over: Ns(1_000_000)
            })
        );
        assert_eq!(When::parse("SIGUSR1"), Ok(When::Signal));
        assert_eq!(When::parse("exit"), Ok(When::Exit));
    }

    #[test]
    fn what_cannot() {
        for shape in ["", ">", "acl_in", "> 5us", "acl_in >", "SIGUSR2", "sigusr1"] {
            let said = When::parse(shape);
            assert_eq!(said, Err(WhenError::Shape(shape.into())), "{shape}");
        }
        for comparison in [
            "f < 5us",
            "f >= 5us",
            "f >> 5us",
            "f = 5us",
            "f => 5us",
            "f->n > 5us > 1us",
        ] {
            let said = When::parse(comparison);
            let expected = if comparison.starts_with("f->n") {
                call("f->n > 5us", 1_000)
            } else {
                Err(WhenError::Comparison(comparison.into()))
            };
            assert_eq!(said, expected, "{comparison}");
        }
        for time in [
            "f > 5",
            "f > 5 us",
            "f > fast",
            "f > -1ms",
            "f > 1e3us",
            "f > 5m",
        ] {
            let said = When::parse(time);
            assert!(
                matches!(said, Err(WhenError::Time { .. })),
                "{time}: {said:?}"
            );
        }
        let said = When::parse("acl_* > 5us");
        assert!(matches!(said, Err(WhenError::Name(..))), "{said:?}");
    }

    proptest! {
        /// Whatever is written: an answer, in one line.
        #[test]
        fn any_text(text in "[ -~\\n>]{0,40}") {
            if let Err(e) = When::parse(&text) {
                prop_assert!(!e.to_string().contains('\n'), "{e}");
            }
        }

        #[test]
        fn names_and_times_come_back(name in "[a-z_][a-z0-9_]{0,20}", us in 1u64..1_000_000) {
            prop_assume!(name != "packet");
            prop_assert_eq!(When::parse(&format!("{name} > {us}us")), call(&name, us * 1_000));
        }
    }
}
