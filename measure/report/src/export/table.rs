//! Rows and columns, for the formats that are tables.
use super::Facts;
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    U64,
    I64,
    /// All of `U64` and `I64`: values that are signed or not by the row.
    Integer,
    F64,
    Text,
    /// Nanoseconds since 1970, UTC.
    Instant,
}

/// Units are at the end of the name: `_ns`, `_tsc` (ticks of the time-stamp counter), `_bytes`.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    pub name: &'a str,
    pub kind: ColumnType,
    /// For the metadata of formats that have some.
    pub what: &'static str,
}

/// A column that only some recordings have.
#[derive(Debug, Clone)]
pub struct OwnedColumn {
    pub name: String,
    pub kind: ColumnType,
    pub what: &'static str,
}

/// A line for each: name, type, and what it is.
macro_rules! columns {
    ($($name:tt $kind:ident $what:literal),* $(,)?) => {
        &[$($crate::export::Column {
            name: $name,
            kind: $crate::export::ColumnType::$kind,
            what: $what,
        }),*]
    };
}
pub(super) use columns;

/// The first column says what kind of thing the row is.
#[derive(Debug, Clone)]
pub struct Schema {
    pub name: &'static str,
    /// Of every recording.
    pub columns: &'static [Column<'static>],
    /// In front of the last of them, which is for notes.
    pub more: Vec<OwnedColumn>,
}

impl Schema {
    /// In the order of a row's values.
    pub fn all(&self) -> impl Iterator<Item = Column<'_>> {
        let (last, first) = match self.columns.split_last() {
            Some((last, first)) => (Some(*last), first),
            None => (None, self.columns),
        };
        let more = self.more.iter().map(|column| Column {
            name: &column.name,
            kind: column.kind,
            what: column.what,
        });
        first.iter().copied().chain(more).chain(last)
    }

    pub(super) fn width(&self) -> usize {
        self.columns.len() + self.more.len()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    None,
    U64(u64),
    I64(i64),
    F64(f64),
    Text(&'a str),
}

impl From<u64> for Value<'_> {
    fn from(n: u64) -> Self {
        Value::U64(n)
    }
}

impl From<u32> for Value<'_> {
    fn from(n: u32) -> Self {
        Value::U64(n.into())
    }
}

impl From<i64> for Value<'_> {
    fn from(n: i64) -> Self {
        Value::I64(n)
    }
}

impl From<i32> for Value<'_> {
    fn from(n: i32) -> Self {
        Value::I64(n.into())
    }
}

impl From<f64> for Value<'_> {
    fn from(n: f64) -> Self {
        Value::F64(n)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::None, Into::into)
    }
}

/// Takes the rows of one table.
pub trait Rows {
    /// One value a column of the schema.
    ///
    /// # Errors
    /// Those of the output.
    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()>;

    /// The last call: what the recording lacks, and where it comes from.
    ///
    /// # Errors
    /// Those of the output.
    fn finish(&mut self, facts: &Facts) -> io::Result<()>;
}

impl<R: Rows + ?Sized> Rows for &mut R {
    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        (**self).row(values)
    }

    fn finish(&mut self, facts: &Facts) -> io::Result<()> {
        (**self).finish(facts)
    }
}
