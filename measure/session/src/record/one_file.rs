//! The file of a recording that is no flight recorder's: all that is recorded, or each Nth run, and packets beside it.
use super::RecordRequest;
use super::flight::Tables;
use super::recorder::Parts;
use super::slices::{Beside, SlicesDone, WithSlices};
use crate::error::{Context, Result};
use crate::output::{self, Place};
use hopscope_event::{FunctionId, Summary, ThinEntry};
use hopscope_probe::recorder::RecorderResult;
use hopscope_probe::recorder::thin::Thin;
use hopscope_trace::{TraceReader, TraceWriter};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The rings, drained to their end.
pub(super) struct Drained {
    pub outcome: RecorderResult,
    pub thin: Option<ThinEntry>,
    /// `None`: not asked for.
    pub slices: Option<SlicesDone>,
}

pub(super) struct OneFile {
    pub writer: TraceWriter<BufWriter<File>>,
    place: Place,
    beside: Option<Beside>,
}

/// With nothing in it yet.
pub(super) struct NewFile {
    file: File,
    place: Place,
    beside: Option<Beside>,
}

impl NewFile {
    pub(super) fn create(request: &RecordRequest, beside: Option<Beside>) -> Result<NewFile> {
        let (file, place) = output::create(&request.output, request.mode)?;
        Ok(NewFile {
            file,
            place,
            beside,
        })
    }

    /// Probes are there; from here on packets are sliced.
    pub(super) fn begin(self, tables: &Tables<'_>) -> Result<OneFile> {
        let buffered = BufWriter::with_capacity(1 << 20, self.file);
        let mut begun = OneFile {
            writer: TraceWriter::new(buffered, tables.meta)?,
            place: self.place,
            beside: self.beside,
        };
        tables.write(&mut begun.writer)?;
        if let Some(beside) = &mut begun.beside {
            beside.begin(&mut begun.writer)?;
        }
        Ok(begun)
    }
}

impl OneFile {
    /// Until something ends it; `roots`: what runs begin with, of which each `every`th is kept.
    pub(super) fn record(
        &mut self,
        parts: Parts<'_>,
        every: Option<u64>,
        roots: Vec<FunctionId>,
    ) -> Result<Drained> {
        // From here on there is something to keep, whatever happens.
        self.place.keep();
        let writer = &mut self.writer;
        let (outcome, thin) = match (every, &mut self.beside) {
            (None, None) => (parts.drive(writer), None),
            (None, Some(beside)) => (parts.drive(&mut WithSlices { writer, beside }), None),
            (Some(every), _) => {
                let mut thin = Thin::new(writer, roots, every);
                thin.begin()?;
                let outcome = parts.drive(&mut thin);
                (outcome, Some(thin.finish()))
            }
        };
        let beside = self.beside.take();
        let slices = beside.map(|beside| beside.finish(&mut self.writer));
        Ok(Drained {
            outcome,
            thin,
            slices: slices.transpose()?,
        })
    }

    pub(super) fn close(self, request: &RecordRequest, summary: &Summary) -> Result<()> {
        let writing = || format!("writing {}", request.output.display());
        let mut buffered = self.writer.finish(summary).with_context(writing)?;
        buffered.flush().with_context(writing)?;
        if self.place.is_file() {
            buffered.get_ref().sync_data().with_context(writing)?;
        }
        self.place.put()
    }
}

/// Of a file that could not be written on.
pub(super) fn records_in(path: &Path) -> Option<u64> {
    // Neither a device nor a pipe is read.
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let reader = is_file.then(|| TraceReader::open(path).ok()).flatten()?;
    let records = reader.heads().map(|head| u64::from(head.records));
    Some(records.sum())
}
