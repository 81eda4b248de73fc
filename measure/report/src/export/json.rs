//! One object a line, each with `type` and `schema`; absent values are left out. The last line is
//! the summary.
use super::{Facts, Rows, Schema, Value};
use crate::json_line::line;
use serde::{Serialize, Serializer};
use std::io::{self, Write};

pub struct JsonRows<W: Write> {
    out: W,
    schema: Schema,
}

impl<W: Write> JsonRows<W> {
    pub fn new(out: W, schema: &Schema) -> JsonRows<W> {
        let schema = schema.clone();
        JsonRows { out, schema }
    }
}

struct Row<'a>(&'a Schema, &'a [Value<'a>]);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::None => serializer.serialize_none(),
            Value::U64(n) => serializer.serialize_u64(*n),
            Value::I64(n) => serializer.serialize_i64(*n),
            Value::F64(n) => serializer.serialize_f64(*n),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &self.1[0])?;
        map.serialize_entry("schema", &1)?;
        for (column, value) in self.0.all().zip(self.1).skip(1) {
            if *value != Value::None {
                map.serialize_entry(column.name, value)?;
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    r#type: &'static str,
    schema: u32,
    table: &'static str,
    #[serde(flatten)]
    facts: &'a Facts,
}

impl<W: Write> Rows for JsonRows<W> {
    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        debug_assert_eq!(values.len(), self.schema.width());
        line(&mut self.out, &Row(&self.schema, values))
    }

    fn finish(&mut self, facts: &Facts) -> io::Result<()> {
        let summary = Summary {
            r#type: "summary",
            schema: 1,
            table: self.schema.name,
            facts,
        };
        line(&mut self.out, &summary)?;
        self.out.flush()
    }
}
