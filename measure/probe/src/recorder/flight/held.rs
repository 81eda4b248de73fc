//! What is in memory: batches as they came, encoded, oldest first.
use hopscope_event::{CapturePlace, OffCpu, Record, ThreadIx, Tsc};
use hopscope_trace::{RecordBatch, Switches, TraceError, TraceWriter, codec};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::ops::Range;

/// Records of one piece: what is dropped at a time, and decoded at a time.
const PIECE_RECORDS: usize = 1 << 14;
/// What a piece takes beside its bytes.
const PIECE_BYTES: u64 = 96;

hopscope_event::sums! {
    /// What went into a file.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Kept {
        pub records: u64,
        pub lost: u64,
        pub torn: u64,
        pub switches: u64,
    }
}

#[derive(Debug, Default)]
pub(super) struct Held {
    pieces: VecDeque<Piece>,
    switches: VecDeque<(ThreadIx, u64, OffCpu)>,
    bytes: u64,
    buffer: Vec<u8>,
    /// Latest of what went because the memory was full.
    pub(super) gone_for_room: Option<Tsc>,
}

#[derive(Debug)]
struct Piece {
    thread: ThreadIx,
    first_index: u64,
    lost: u64,
    torn: u64,
    count: usize,
    from: Tsc,
    to: Tsc,
    encoded: Box<[u8]>,
}

impl Piece {
    fn bytes(&self) -> u64 {
        self.encoded.len() as u64 + PIECE_BYTES
    }

    /// Its records, and which of them lie in `from..=until`.
    fn part(&self, from: Tsc, until: Tsc) -> Result<(Vec<Record>, Range<usize>), TraceError> {
        let records =
            codec::decode(&self.encoded, self.count).ok_or_else(|| TraceError::Chunk {
                at: 0,
                what: "records held in memory do not decode any more".into(),
            })?;
        let begin = match self.from < from {
            true => first_at(&records, |tsc| tsc >= from.0),
            false => 0,
        };
        let mut end = match self.to > until {
            true => begin + first_at(&records[begin..], |tsc| tsc > until.0),
            false => records.len(),
        };
        // What is captured at a return lies before its exit, and goes with it.
        let of_exit = |r: &Record| r.value().and_then(|v| v.at()) == Some(CapturePlace::Return);
        while self.to > until && end > begin && of_exit(&records[end - 1]) {
            end -= 1;
        }
        Ok((records, begin..end))
    }
}

/// Captured values have no time of their own: they go with the record before them.
fn stamps(records: &[Record]) -> impl Iterator<Item = u64> {
    records
        .iter()
        .filter(|r| r.value().is_none())
        .map(|r| r.tsc)
}

impl Held {
    pub(super) fn records_of(&mut self, batch: &RecordBatch<'_>) {
        let (mut lost, mut torn) = (batch.lost_before, batch.torn_before);
        let mut index = batch.first_index;
        let parts = batch.records.chunks(PIECE_RECORDS);
        let empty = batch.records.is_empty().then_some(&[][..]);
        for part in parts.chain(empty) {
            self.buffer.clear();
            let end = codec::encode(part, &mut self.buffer, 0);
            let last = self.pieces.back().map_or(Tsc(0), |p| p.to);
            let piece = Piece {
                thread: batch.thread,
                first_index: index,
                lost: std::mem::take(&mut lost),
                torn: std::mem::take(&mut torn),
                count: part.len(),
                from: stamps(part).min().map_or(last, Tsc),
                to: stamps(part).max().map_or(last, Tsc),
                encoded: self.buffer[..end].into(),
            };
            index += part.len() as u64;
            self.bytes += piece.bytes();
            self.pieces.push_back(piece);
        }
    }

    pub(super) fn switches_of(&mut self, batch: &Switches<'_>) {
        let mut lost = batch.lost_before;
        for row in batch.rows {
            self.switches
                .push_back((batch.thread, std::mem::take(&mut lost), *row));
        }
        if lost > 0 {
            // Nothing follows yet: told with a row of no length at the end of what is known.
            let last = self.pieces.back().map_or(Tsc(0), |p| p.to);
            let row = OffCpu {
                out: last,
                back: last,
                preempted: false,
            };
            self.switches.push_back((batch.thread, lost, row));
        }
    }

    /// Moves to `writer` what lies in `from..=until`, and forgets what is older; younger stays.
    /// Gives also how many records were older.
    pub(super) fn save<W: Write>(
        &mut self,
        from: Tsc,
        until: Tsc,
        writer: &mut TraceWriter<W>,
        mut name: impl FnMut(ThreadIx, &mut TraceWriter<W>) -> Result<(), TraceError>,
    ) -> Result<(Kept, u64), TraceError> {
        let (mut kept, mut too_old) = (Kept::default(), 0);
        let all = std::mem::take(&mut self.pieces);
        self.bytes = 0;
        // Of these something is younger: what follows it stays behind it.
        let mut waiting = BTreeSet::new();
        for piece in all {
            if piece.from > until || waiting.contains(&piece.thread) {
                waiting.insert(piece.thread);
                self.bytes += piece.bytes();
                self.pieces.push_back(piece);
                continue;
            }
            if piece.to < from {
                too_old += piece.count as u64;
                continue;
            }
            let (records, part) = piece.part(from, until)?;
            let whole = part.start == 0;
            let batch = RecordBatch {
                thread: piece.thread,
                first_index: piece.first_index + part.start as u64,
                lost_before: if whole { piece.lost } else { 0 },
                torn_before: if whole { piece.torn } else { 0 },
                records: &records[part.clone()],
            };
            too_old += part.start as u64;
            if !batch.records.is_empty() || batch.lost_before + batch.torn_before > 0 {
                name(piece.thread, writer)?;
                writer.records(batch)?;
                kept.records += batch.records.len() as u64;
                kept.lost += batch.lost_before;
                kept.torn += batch.torn_before;
            }
            if part.end < records.len() {
                waiting.insert(piece.thread);
                self.records_of(&RecordBatch {
                    thread: piece.thread,
                    first_index: piece.first_index + part.end as u64,
                    lost_before: 0,
                    torn_before: 0,
                    records: &records[part.end..],
                });
            }
        }
        kept.switches = self.save_switches(from, until, writer, name)?;
        Ok((kept, too_old))
    }

    fn save_switches<W: Write>(
        &mut self,
        from: Tsc,
        until: Tsc,
        writer: &mut TraceWriter<W>,
        mut name: impl FnMut(ThreadIx, &mut TraceWriter<W>) -> Result<(), TraceError>,
    ) -> Result<u64, TraceError> {
        let mut batches: BTreeMap<ThreadIx, (u64, Vec<OffCpu>)> = BTreeMap::new();
        let mut kept = 0;
        for (thread, lost_before, row) in std::mem::take(&mut self.switches) {
            if row.out > until {
                self.switches.push_back((thread, lost_before, row));
                continue;
            }
            if row.back < from {
                continue;
            }
            kept += 1;
            let (lost, rows) = batches.entry(thread).or_default();
            // What is missing lies between two rows: a batch ends there.
            if lost_before > 0 && !rows.is_empty() {
                name(thread, writer)?;
                let (lost_before, rows) = (std::mem::take(lost), std::mem::take(rows));
                writer.switches(Switches {
                    thread,
                    lost_before,
                    rows: &rows,
                })?;
            }
            *lost += lost_before;
            rows.push(row);
        }
        for (thread, (lost_before, rows)) in batches {
            name(thread, writer)?;
            writer.switches(Switches {
                thread,
                lost_before,
                rows: &rows,
            })?;
        }
        Ok(kept)
    }

    /// Gives how many records went.
    pub(super) fn drop_before(&mut self, oldest: Tsc) -> u64 {
        let mut dropped = 0;
        while self.pieces.front().is_some_and(|p| p.to < oldest) {
            dropped += self.drop_piece();
        }
        // Not quite in order of time, as threads take turns: some stay a little longer.
        while self.oldest_switch().is_some_and(|back| back < oldest) {
            self.switches.pop_front();
        }
        dropped
    }

    pub(super) fn bytes(&self) -> u64 {
        let row_bytes = size_of::<(ThreadIx, u64, OffCpu)>();
        self.bytes + (self.switches.len() * row_bytes) as u64
    }

    /// The oldest goes until the rest has room; gives how many records and switches went.
    pub(super) fn drop_beyond(&mut self, bytes_max: u64) -> (u64, u64) {
        let (mut records, mut switches) = (0, 0);
        while self.bytes() > bytes_max {
            let piece = self.pieces.front().map(|p| p.to);
            let switch = self.oldest_switch();
            let gone = match (piece, switch) {
                (Some(to), back) if back.is_none_or(|back| to <= back) => {
                    records += self.drop_piece();
                    to
                }
                (_, Some(back)) => {
                    self.switches.pop_front();
                    switches += 1;
                    back
                }
                _ => break,
            };
            self.gone_for_room = self.gone_for_room.max(Some(gone));
        }
        (records, switches)
    }

    fn oldest_switch(&self) -> Option<Tsc> {
        self.switches.front().map(|(_, _, row)| row.back)
    }

    fn drop_piece(&mut self) -> u64 {
        let Some(piece) = self.pieces.pop_front() else {
            return 0;
        };
        self.bytes -= piece.bytes();
        piece.count as u64
    }

    pub(super) fn records(&self) -> u64 {
        self.pieces.iter().map(|p| p.count as u64).sum()
    }

    pub(super) fn threads(&self) -> BTreeSet<ThreadIx> {
        let switched = self.switches.iter().map(|(thread, ..)| *thread);
        self.pieces
            .iter()
            .map(|p| p.thread)
            .chain(switched)
            .collect()
    }
}

/// Index of the first record of which that is so.
fn first_at(records: &[Record], is: impl Fn(u64) -> bool) -> usize {
    let found = records
        .iter()
        .position(|r| r.value().is_none() && is(r.tsc));
    found.unwrap_or(records.len())
}
