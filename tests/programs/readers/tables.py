"""Reads one Parquet file with DuckDB, pandas and pyarrow; prints what each saw as JSON."""
import json
import sys
import duckdb
import pandas
import pyarrow.parquet

path = sys.argv[1]
sums = """select function, count(*) n, sum(total_raw_tsc) total, min(entry_tsc) first,
    min(epoch_ns(entry_realtime_ns)) instant from '{}' where row = 'call' group by 1"""
by_duckdb = {
    name: {"n": n, "total": None if total is None else int(total), "first": first, "instant": instant}
    for name, n, total, first, instant in duckdb.sql(sums.format(path)).fetchall()
}
frame = pandas.read_parquet(path)
calls = frame[frame.row == "call"]
by_pandas = {
    name: {"n": len(rows), "own_raw_ns": float(rows.own_raw_ns.sum())}
    for name, rows in calls.groupby("function")
}
file = pyarrow.parquet.ParquetFile(path)
metadata = {k.decode(): v.decode() for k, v in file.metadata.metadata.items()}
print(json.dumps({
    "duckdb": by_duckdb,
    "pandas": by_pandas,
    "rows": {kind: len(rows) for kind, rows in frame.groupby("row")},
    "types": {c.name: str(c.logical_type) for c in (file.schema.column(i) for i in range(len(file.schema)))},
    "metadata": metadata,
}))
