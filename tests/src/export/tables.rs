//! Tables: DuckDB, pandas, pyarrow and Python's own CSV reader see the same rows.
use super::{export, of_kind, rows, tricky};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::paths::{programs, readers_python};
use hopscope_tests::{Requirement, Suite, scratch};
use serde_json::Value;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "export::parquet_is_read_by_duckdb_and_pandas",
        &[Requirement::Readers],
        parquet,
    );
    suite.case("export::csv_is_json", &[Requirement::Python3], csv);
}

fn parquet() -> Result<()> {
    let file = scratch().join("calls.parquet");
    let name = file.display().to_string();
    export(&tricky(), &["--format", "parquet", "-o", &name])?;
    let out = run(Command::new(readers_python())
        .arg(programs().join("readers/tables.py"))
        .arg(&file))?
    .expect_code(0)?;
    let seen: Value = serde_json::from_str(&out.stdout)?;
    let (rows, summary) = rows(&tricky(), &[])?;
    let functions = seen["duckdb"].as_object().context("functions")?;
    ensure!(functions.len() == 4, "{functions:?}");
    for (function, sums) in functions {
        let its: Vec<&Value> = of_kind(&rows, "call")
            .filter(|row| row["function"] == function.as_str())
            .collect();
        let ticks = its.iter().filter_map(|row| row["total_raw_tsc"].as_i64());
        let ticks = ticks.reduce(|a, b| a + b);
        let first = its.iter().filter_map(|row| row["entry_tsc"].as_u64()).min();
        let instant = its
            .iter()
            .filter_map(|row| row["entry_realtime_ns"].as_i64());
        let own: f64 = its
            .iter()
            .filter_map(|row| row["own_raw_ns"].as_f64())
            .sum();
        let by_pandas = &seen["pandas"][function];
        ensure!(
            sums["n"] == its.len() && by_pandas["n"] == its.len(),
            "{seen}"
        );
        ensure!(sums["total"].as_i64() == ticks, "{function}: {sums}");
        ensure!(sums["first"].as_u64() == first, "{function}: {sums}");
        ensure!(
            sums["instant"].as_i64() == instant.min(),
            "{function}: {sums}"
        );
        let difference = own - by_pandas["own_raw_ns"].as_f64().context("own_raw_ns")?;
        ensure!(difference.abs() < 1e-6, "{function}: {by_pandas}");
    }
    for kind in ["call", "end", "gap"] {
        ensure!(seen["rows"][kind] == of_kind(&rows, kind).count(), "{seen}");
    }
    let facts = seen["metadata"]["hopscope"].as_str().context("facts")?;
    let facts: Value = serde_json::from_str(facts)?;
    for name in [
        "records_lost",
        "records_torn",
        "cut_by_loss",
        "tsc_frequency_hz",
    ] {
        ensure!(
            facts[name] == summary[name] && facts[name].as_u64() > Some(0),
            "{facts}"
        );
    }
    let what = &seen["metadata"]["hopscope.column.own_raw_ns"];
    ensure!(
        what.as_str().is_some_and(|w| w.contains("without")),
        "{what}"
    );
    let instant = &seen["types"]["entry_realtime_ns"];
    let nanoseconds = instant.as_str().is_some_and(|t| t.contains("nanoseconds"));
    ensure!(nanoseconds, "{instant}");
    Ok(())
}

/// Every cell is that of the JSON, by a reader that knows nothing of either writer.
fn csv() -> Result<()> {
    let file = scratch().join("calls.csv");
    export(
        &tricky(),
        &["--format", "csv", "-o", &file.display().to_string()],
    )?;
    let program = "import csv, json, sys; print(json.dumps(list(csv.DictReader(open(sys.argv[1], newline='')))))";
    let out = run(Command::new("python3").args(["-c", program]).arg(&file))?.expect_code(0)?;
    let cells: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&out.stdout)?;
    let (rows, _) = rows(&tricky(), &[])?;
    let data: Vec<_> = cells.iter().filter(|c| c["row"] != "note").collect();
    ensure!(data.len() == rows.len() && rows.len() > 20);
    for (cells, row) in data.iter().zip(&rows) {
        for (name, cell) in *cells {
            let expected = match &row[if name == "row" { "type" } else { name }] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            let cell = cell.as_str().context("a cell")?;
            let same = cell == expected || format!("{cell}.0") == expected;
            ensure!(same, "{name}: {cell} in CSV, {expected} in JSON");
        }
    }
    let notes: Vec<_> = cells.iter().filter(|c| c["row"] == "note").collect();
    let lost = |c: &&&serde_json::Map<String, Value>| c["note"] == "records_lost: 5";
    ensure!(notes.iter().any(|c| lost(&c)), "{notes:?}");
    Ok(())
}
