//! Counts the records of a trace by decoding them all: `read_count FILE`. Under `valgrind
//! --tool=callgrind` it tells what reading a record costs, the same on every machine.
use hopscope_trace::TraceReader;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: read_count FILE")?;
    let reader = TraceReader::open(path)?;
    let mut records = 0;
    for batch in reader.batches() {
        records += batch?.records.len();
    }
    println!("{records}");
    Ok(())
}
