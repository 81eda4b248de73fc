//! Where every entry and every exit went. Nothing drops out of these counts.

hopscope_event::sums! {
    /// Accounts for all recorded entries and ends (exits, tail exits, escapes).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Balance {
        pub entries: u64,
        /// Entries paired with the exit of the same activation.
        pub exits: u64,
        /// Entries whose activation left by a jump to another function.
        pub tail_exits: u64,
        /// Entries still running when the recording ended.
        pub open_at_end: u64,
        /// Declared loss: the activation went on in the unmeasured original.
        pub escaped: u64,
        /// Entries whose end may lie in a gap of lost records.
        pub cut: u64,
        /// Discarded because the stack pointer moved above them: longjmp, exception, thread exit.
        pub unwound: u64,
        /// Another thread was on their stack meanwhile: which end is theirs, or what they called, is not known.
        pub moved: u64,
        /// Ends of activations that began before the first record.
        pub ends_open_at_start: u64,
        /// Ends whose entry may lie in a gap of lost records.
        pub ends_cut: u64,
        /// Ends on a stack on which other threads were too: which entry is theirs, or what was called, is not known.
        pub ends_moved: u64,
    }
}

/// What one entry came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    OpenAtEnd,
    Escaped,
    Cut,
    Unwound,
    Moved,
}

/// Why an end has no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphan {
    OpenAtStart,
    Cut,
    Moved,
}

impl Balance {
    /// `entries = exits + tail exits + open at end + declared lost + cut by loss + unwound + moved`
    pub fn holds(&self) -> bool {
        let ended = self.exits + self.tail_exits + self.open_at_end;
        let unknown = self.escaped + self.cut + self.unwound + self.moved;
        self.entries == ended + unknown
    }

    /// Calls that moved between threads with their stack, or may have: an end may be without its entry, an entry
    /// without its end.
    pub fn calls_moved(&self) -> u64 {
        self.moved.max(self.ends_moved)
    }

    pub fn add_fate(&mut self, fate: Fate) {
        *match fate {
            Fate::OpenAtEnd => &mut self.open_at_end,
            Fate::Escaped => &mut self.escaped,
            Fate::Cut => &mut self.cut,
            Fate::Unwound => &mut self.unwound,
            Fate::Moved => &mut self.moved,
        } += 1;
    }

    pub fn add_orphan(&mut self, orphan: Orphan) {
        *match orphan {
            Orphan::OpenAtStart => &mut self.ends_open_at_start,
            Orphan::Cut => &mut self.ends_cut,
            Orphan::Moved => &mut self.ends_moved,
        } += 1;
    }
}

hopscope_event::sums! {
    /// What was odd about the records themselves.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Oddities {
        pub records: u64,
        pub escape_records: u64,
        /// Records with a kind or function that the recording does not know; left out.
        pub unknown: u64,
        /// Records stamped earlier than the record before them (a signal handler ran inside a probe).
        pub inversions: u64,
        /// Paired calls whose exit is stamped before their entry; counted as calls, not timed.
        pub negative: u64,
        /// Calls that were taken for unwound until their exit came: stacks lying close together.
        pub revived: u64,
        /// Waiting stacks given up because a thread had too many of them.
        pub stacks_given_up: u64,
        /// Batches processed before concurrent records of other threads were read.
        pub early_batches: u64,
        /// Gaps: batches that came after lost or torn records.
        pub gaps: u64,
        pub lost: u64,
        pub torn: u64,
        /// Records that the file should hold and does not: damaged parts of it.
        pub missing: u64,
        /// Value records (captured values and why there are none), not counted as calls.
        pub values: u64,
        /// Of those: values whose memory could not be read.
        pub values_unreadable: u64,
        /// Of those: marks that the rest of an array was omitted.
        pub values_left_out: u64,
        /// Of those: with a content unknown to this version; not passed on.
        pub values_unknown: u64,
        /// Of those: what belongs to no open call (its entry is lost, or before the first record).
        pub values_homeless: u64,
        /// Of those: captured inside a body while calls of that function were open on several stacks
        /// of the thread; taken for the one that runs.
        pub values_ambiguous: u64,
        /// Value records that are readings of counters; not among `values`.
        pub readings: u64,
        /// Of those: what belongs to no open call.
        pub readings_homeless: u64,
    }
}
