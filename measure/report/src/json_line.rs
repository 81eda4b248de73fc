//! A line of JSON: an object whose times carry their unit at the end of the field name.
use crate::units::Scale;
use hopscope_analyze::{Corrected, Distribution, Quantile};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::io::{self, Write};

pub(crate) fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Fields in the order they are put in, so that `type` comes first; times go under names that
/// end in their unit.
pub(crate) struct Object<'a> {
    fields: Vec<(String, Value)>,
    scale: &'a Scale,
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(name, value)| (name, value)))
    }
}

impl Object<'_> {
    pub(crate) fn new<'a>(kind: &str, scale: &'a Scale) -> Object<'a> {
        let mut object = Object {
            fields: Vec::new(),
            scale,
        };
        object.put("type", kind);
        object.put("schema", 1);
        object
    }

    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.push((name.to_owned(), value.into()));
    }

    pub(crate) fn time(&mut self, name: &str, ticks: i128) {
        let name = format!("{name}_{}", self.scale.suffix());
        self.put(&name, self.scale.number(ticks));
    }

    /// A quantile that is negative or empty is `null`; `NAME_negative` counts the negative ones.
    pub(crate) fn distribution(&mut self, name: &str, d: &Distribution) {
        let quantiles = [
            ("p50", d.quantile(500)),
            ("p90", d.quantile(900)),
            ("p99", d.quantile(990)),
            ("p99_9", d.quantile(999)),
            ("max", d.max()),
        ];
        for (quantile, value) in quantiles {
            let field = format!("{name}_{quantile}");
            match value {
                Quantile::Ticks(ticks) => self.time(&field, i128::from(ticks)),
                Quantile::Empty | Quantile::Negative => {
                    self.put(&format!("{field}_{}", self.scale.suffix()), Value::Null);
                }
            }
        }
        self.put(&format!("{name}_n"), d.len());
        self.put(&format!("{name}_negative"), d.negative());
    }

    pub(crate) fn corrected(&mut self, name: &str, c: Corrected) {
        self.time(&format!("{name}_corrected"), c.median);
        self.time(&format!("{name}_corrected_low"), c.low);
        self.time(&format!("{name}_corrected_high"), c.high);
    }
}
