//! Lines of JSON: one object each, with its `type` and the `schema` that it keeps to.
use serde::Serialize;
use serde_json::Value;

/// # Errors
/// A value that is no object of JSON.
pub(crate) fn tagged(kind: &str, value: &impl Serialize) -> serde_json::Result<Value> {
    let mut line = serde_json::to_value(value)?;
    line["type"] = kind.into();
    line["schema"] = 1.into();
    Ok(line)
}
