//! Apache Parquet: columns, for DuckDB, pandas, Spark, ClickHouse. Integers are delta-encoded, texts by
//! dictionary; no compression codec is needed on top.
use super::{ColumnType, Facts, Rows, Schema, Value};
use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a group, held in memory: some 30 MiB of calls. DuckDB's own size.
const GROUP_ROWS: usize = 122_880;
/// No integer type of the format holds both signs and 64 bits: decimals of this many digits do, in
/// this many bytes, big-endian.
const DECIMAL_DIGITS: i32 = 20;
const DECIMAL_BYTES: usize = 9;
/// Texts that come again (names) are kept once; notes are not worth it.
const TEXTS_MAX: usize = 1 << 16;

enum Values {
    Integers(Vec<i64>),
    Decimals(Vec<FixedLenByteArray>),
    Floats(Vec<f64>),
    Texts(Vec<ByteArray>),
}

struct Buffer {
    values: Values,
    /// 1 where there is a value.
    defined: Vec<i16>,
}

pub struct ParquetRows<W: Write + Send> {
    /// `None` once it is finished.
    file: Option<SerializedFileWriter<W>>,
    schema: Schema,
    buffers: Vec<Buffer>,
    rows: usize,
    texts: HashMap<String, ByteArray>,
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

fn decimal(n: i128) -> FixedLenByteArray {
    let bytes = n.to_be_bytes();
    ByteArray::from(bytes[bytes.len() - DECIMAL_BYTES..].to_vec()).into()
}

fn column_type(name: &str, kind: ColumnType) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match kind {
        ColumnType::I64 => (Physical::INT64, None),
        ColumnType::Integer => (
            Physical::FIXED_LEN_BYTE_ARRAY,
            Some(LogicalType::decimal(0, DECIMAL_DIGITS)),
        ),
        ColumnType::F64 => (Physical::DOUBLE, None),
        ColumnType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        ColumnType::Instant => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
        ),
    };
    let builder = Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    let builder = match kind {
        ColumnType::Integer => builder
            .with_length(DECIMAL_BYTES as i32)
            .with_precision(DECIMAL_DIGITS)
            .with_scale(0),
        _ => builder,
    };
    Ok(Arc::new(builder.build()?))
}

fn properties(schema: &Schema) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(format!("hopscope {}", env!("CARGO_PKG_VERSION")))
        .set_max_row_group_row_count(Some(GROUP_ROWS));
    for column in schema.all() {
        let path = ColumnPath::from(column.name);
        builder = match column.kind {
            ColumnType::I64 | ColumnType::U64 | ColumnType::Instant => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            ColumnType::Integer | ColumnType::F64 | ColumnType::Text => builder,
        };
    }
    builder.build()
}

impl<W: Write + Send> ParquetRows<W> {
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, schema: &Schema) -> io::Result<ParquetRows<W>> {
        let fields = schema.all().map(|c| column_type(c.name, c.kind));
        let fields = fields.collect::<Result<_, _>>().map_err(failed)?;
        let root = Type::group_type_builder(schema.name).with_fields(fields);
        let root = Arc::new(root.build().map_err(failed)?);
        let file = SerializedFileWriter::new(out, root, Arc::new(properties(schema)));
        let buffer = |kind| Buffer {
            values: match kind {
                ColumnType::U64 | ColumnType::I64 | ColumnType::Instant => {
                    Values::Integers(Vec::new())
                }
                ColumnType::Integer => Values::Decimals(Vec::new()),
                ColumnType::F64 => Values::Floats(Vec::new()),
                ColumnType::Text => Values::Texts(Vec::new()),
            },
            defined: Vec::new(),
        };
        Ok(ParquetRows {
            file: Some(file.map_err(failed)?),
            schema: schema.clone(),
            buffers: schema.all().map(|c| buffer(c.kind)).collect(),
            rows: 0,
            texts: HashMap::new(),
        })
    }

    fn flush_group(&mut self) -> io::Result<()> {
        let Some(file) = self.file.as_mut().filter(|_| self.rows > 0) else {
            return Ok(());
        };
        write_group(file, &mut self.buffers).map_err(failed)?;
        self.rows = 0;
        Ok(())
    }
}

fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    buffers: &mut [Buffer],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for buffer in buffers {
        let Some(mut column) = group.next_column()? else {
            break;
        };
        let defined = Some(buffer.defined.as_slice());
        match &mut buffer.values {
            Values::Integers(v) => {
                column.typed::<Int64Type>().write_batch(v, defined, None)?;
                v.clear();
            }
            Values::Decimals(v) => {
                column
                    .typed::<FixedLenByteArrayType>()
                    .write_batch(v, defined, None)?;
                v.clear();
            }
            Values::Floats(v) => {
                column.typed::<DoubleType>().write_batch(v, defined, None)?;
                v.clear();
            }
            Values::Texts(v) => {
                column
                    .typed::<ByteArrayType>()
                    .write_batch(v, defined, None)?;
                v.clear();
            }
        }
        buffer.defined.clear();
        column.close()?;
    }
    group.close()?;
    Ok(())
}

impl<W: Write + Send> Rows for ParquetRows<W> {
    fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        debug_assert_eq!(values.len(), self.buffers.len());
        for (buffer, value) in self.buffers.iter_mut().zip(values) {
            match (&mut buffer.values, value) {
                (_, Value::None) => {
                    buffer.defined.push(0);
                    continue;
                }
                // Unsigned ones by their bits; the column's type says so.
                (Values::Integers(v), Value::U64(n)) => v.push(*n as i64),
                (Values::Integers(v), Value::I64(n)) => v.push(*n),
                (Values::Decimals(v), Value::U64(n)) => v.push(decimal((*n).into())),
                (Values::Decimals(v), Value::I64(n)) => v.push(decimal((*n).into())),
                (Values::Floats(v), Value::F64(n)) => v.push(*n),
                (Values::Texts(v), Value::Text(text)) => v.push(match self.texts.get(*text) {
                    Some(known) => known.clone(),
                    None => {
                        let new = ByteArray::from(*text);
                        if self.texts.len() < TEXTS_MAX {
                            self.texts.insert((*text).to_owned(), new.clone());
                        }
                        new
                    }
                }),
                _ => return Err(io::Error::other("a value is not of its column's kind")),
            }
            buffer.defined.push(1);
        }
        self.rows += 1;
        match self.rows {
            GROUP_ROWS => self.flush_group(),
            _ => Ok(()),
        }
    }

    /// Facts go to the file's metadata under `hopscope` as JSON; what a column is, under
    /// `hopscope.column.NAME`.
    fn finish(&mut self, facts: &Facts) -> io::Result<()> {
        self.flush_group()?;
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let mut put = |key: String, value: String| {
            file.append_key_value_metadata(KeyValue::new(key, value));
        };
        put("hopscope".into(), serde_json::to_string(facts)?);
        put("hopscope.table".into(), self.schema.name.into());
        put("hopscope.schema".into(), "1".into());
        for column in self.schema.all() {
            put(
                format!("hopscope.column.{}", column.name),
                column.what.into(),
            );
        }
        let mut out = file.into_inner().map_err(failed)?;
        out.flush()
    }
}
