//! The end of a session: hooks detached, what is left in the ring taken, and what came of it said.
use super::Session;
use crate::error::{Error, Result};
use crate::slice::ended::Ended;
use crate::slice::kernel::Taken;
use hopscope_event::Summary;
use hopscope_event::clock::read::clock_sync;
use hopscope_event::slice::SliceSummary;
use hopscope_process::Launched;
use hopscope_report::slice::SliceSource;
use std::io::Write;

pub struct Finished {
    pub ended: Ended,
    /// The command that was started.
    pub child: Option<Launched>,
}

impl<W: Write> Session<W> {
    /// `why` it ended, or what failed: then what was captured and lost is said all the same. The summary goes to
    /// `err` where packets go to a file, and to `out`, for programs, with `json`.
    ///
    /// # Errors
    /// What failed, or the output does.
    pub fn finish(
        mut self,
        why: Result<Ended>,
        err: &mut dyn Write,
        json: bool,
    ) -> Result<Finished> {
        self.kernel.detach();
        let duration = self.kernel.begun().elapsed();
        let ended = why.and_then(|why| self.last(why).map(|()| why));
        // Nobody is left to be told.
        let ended = match ended {
            Err(error) if error.is_broken_pipe() => return Err(error),
            Err(error) => Err(self.give_up(error)?),
            Ok(why) => Ok(why),
        };
        let summary = self.kernel.summary(duration)?;
        let closed = self.close(&summary, err, json);
        let ended = ended?;
        closed?;
        let recorded = self.pass.taken();
        if let Some(file) = self.pass.into_file() {
            let whole = Summary {
                recorded,
                ..Summary::ended(clock_sync(), ended.to_string())
            };
            file.finish(Some(&summary), Some(&whole))?;
        }
        let child = self.child;
        Ok(Finished { ended, child })
    }

    /// What ended before the hooks were gone.
    fn last(&mut self, why: Ended) -> Result<()> {
        self.sync()?;
        while why != Ended::Enough && self.take(None)? == Taken::Part {}
        Ok(())
    }

    /// The same, counted only. The error says how much of the file is there.
    fn give_up(&mut self, error: Error) -> Result<Error> {
        let given = self.pass.give_up().map(|file| file.packets());
        while self.take(None)? == Taken::Part {}
        let files = self.files.as_ref();
        let incomplete = given.and_then(|given| files?.incomplete(given));
        Ok(match incomplete {
            Some(incomplete) => error.context(incomplete),
            None => error,
        })
    }

    fn close(
        &mut self,
        summary: &SliceSummary,
        mut err: &mut dyn Write,
        json: bool,
    ) -> std::io::Result<()> {
        let source = SliceSource {
            entry: &self.entry,
            time: &self.time,
        };
        let (pass, out, summary) = (&self.pass, &mut self.out, Some(summary));
        match &self.files {
            None => pass.close(out, source, None, summary)?,
            // Packets are in the file; a program reads the summary.
            Some(files) if json && !files.is_stdout() => {
                pass.close_json(out, source, None, summary)?;
            }
            Some(_) => pass.close(&mut err, source, None, summary)?,
        }
        self.out.flush()
    }
}
