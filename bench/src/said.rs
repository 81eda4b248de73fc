//! JSON that a measured program printed.
use crate::error::{Error, Result};
use serde_json::Value;

/// The last line.
pub(crate) fn last_line(program: &str, printed: &str) -> Result<Value> {
    let line = printed.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| Error::no_summary(program, line))
}

/// `at`: a JSON pointer.
pub(crate) fn number(program: &str, said: &Value, at: &str) -> Result<f64> {
    let found = said.pointer(at).and_then(Value::as_f64);
    found.ok_or_else(|| Error::no_field(program, at, said))
}
