//! Comma-separated values (RFC 4180, lines end in LF).
use super::{Facts, Rows, Schema, Value};
use std::io::{self, Write};

pub struct CsvRows<W: Write> {
    out: W,
    schema: Schema,
}

impl<W: Write> CsvRows<W> {
    /// Writes the names of the columns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, schema: &Schema) -> io::Result<CsvRows<W>> {
        let names: Vec<_> = schema.all().map(|c| c.name).collect();
        writeln!(out, "{}", names.join(","))?;
        let schema = schema.clone();
        Ok(CsvRows { out, schema })
    }
}

/// Quoted where RFC 4180 asks for it. A text that a spreadsheet would take for a formula gets an
/// apostrophe in front, which spreadsheets do not show: names come from foreign files.
fn text(out: &mut impl Write, text: &str) -> io::Result<()> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let quoted = text.contains([',', '"', '\n', '\r']) || text.starts_with([' ', '#']);
    if quoted {
        out.write_all(b"\"")?;
    }
    if formula {
        out.write_all(b"'")?;
    }
    if text.contains('"') {
        out.write_all(text.replace('"', "\"\"").as_bytes())?
    } else {
        out.write_all(text.as_bytes())?
    }
    if quoted { out.write_all(b"\"") } else { Ok(()) }
}

impl<W: Write> Rows for CsvRows<W> {
    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        debug_assert_eq!(values.len(), self.schema.width());
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                self.out.write_all(b",")?;
            }
            match value {
                Value::None => {}
                Value::U64(n) => write!(self.out, "{n}")?,
                Value::I64(n) => write!(self.out, "{n}")?,
                Value::F64(n) => write!(self.out, "{n}")?,
                Value::Text(name) => text(&mut self.out, name)?,
            }
        }
        self.out.write_all(b"\n")
    }

    /// The format has no metadata: what matters comes as rows of kind `note`.
    fn finish(&mut self, facts: &Facts) -> io::Result<()> {
        for fact in facts.matters() {
            let note = format!("{}: {}", fact.name, fact.text());
            let mut values = vec![Value::None; self.schema.width()];
            values[0] = Value::Text("note");
            if let Some(last) = values.last_mut() {
                *last = Value::Text(&note);
            }
            self.row(&values)?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn names_are_quoted_and_no_formula() {
        let cell = |name: &str| {
            let mut out = Vec::new();
            text(&mut out, name).expect("to memory");
            String::from_utf8(out).expect("UTF-8 in, UTF-8 out")
        };
        assert_eq!(cell("acl_match"), "acl_match");
        assert_eq!(cell("map<int, int>"), "\"map<int, int>\"");
        assert_eq!(cell("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
        assert_eq!(cell("=HYPERLINK(1,2)"), "\"'=HYPERLINK(1,2)\"");
        assert_eq!(cell("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(cell("+1"), "'+1");
        assert_eq!(cell("# no comment"), "\"# no comment\"");
    }
}
