//! What every export says of its recording: where it comes from, and what it lacks.
use crate::printable_text::utc;
use crate::recording::Recording;
use hopscope_analyze::{Balance, Oddities, Packets};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// A name and a value, for the metadata of a format.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub name: &'static str,
    pub value: Value,
    /// Whoever reads the data must know it: something is missing or doubtful.
    pub matters: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts(pub Vec<Fact>);

impl Facts {
    /// Where the recording comes from, and what is known of its losses before its records are read.
    pub fn of(recording: &Recording<'_>) -> Facts {
        let meta = recording.meta;
        let mut facts = Facts::default();
        facts.put("hopscope_version", meta.hopscope_version.as_str());
        facts.put("command_line", json!(meta.command_line));
        facts.put("host", meta.host.as_str());
        facts.put("kernel", meta.kernel.as_str());
        facts.put("cpu", meta.cpu.as_str());
        facts.put("started", utc(meta.start.realtime_ns));
        facts.put("start_tsc", meta.start.tsc.0);
        facts.put("tsc_frequency_hz", meta.tsc_frequency.0);
        facts.put("probe_cost_tsc", json!(meta.probe_cost));
        if !recording.counters.is_empty() {
            facts.put("counters", crate::counters::entries(recording.counters));
        }
        for counter in recording.counters.iter().filter(|c| c.emulated) {
            facts.matter("counter_emulated_by_the_program", counter.name.as_str());
        }
        if !recording.filter.is_empty() {
            facts.put("shown", recording.filter);
        }
        facts.doubt("tsc_not_known_invariant", u64::from(!meta.tsc_invariant));
        facts.doubt("functions_refused", recording.refusals.len() as u64);
        if let Some(budget) = recording.budget {
            let gone = budget.left_out.iter().filter(|one| one.at.is_some());
            facts.doubt("functions_left_out_while_recording", gone.count() as u64);
        }
        if let Some(damage) = recording.damage {
            facts.matter("damage", damage);
        }
        match recording.summary {
            Some(s) => {
                facts.put("ended_because", s.ended_because.as_str());
                match s.calls_unmeasured {
                    Some(calls) => facts.doubt("calls_unmeasured", calls),
                    None => facts.matter("calls_unmeasured", Value::Null),
                }
                for note in &s.notes {
                    facts.matter("note", note.as_str());
                }
            }
            None => facts.matter(
                "ended",
                "not in order: the recorder's own counts of lost records are missing",
            ),
        }
        facts
    }

    pub fn put(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        self.0.push(Fact {
            name,
            value,
            matters: false,
        });
    }

    pub fn matter(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        self.0.push(Fact {
            name,
            value,
            matters: true,
        });
    }

    /// A count that matters unless it is 0; it is there in any case.
    pub fn doubt(&mut self, name: &'static str, count: u64) {
        self.0.push(Fact {
            name,
            value: count.into(),
            matters: count > 0,
        });
    }

    /// What became of calls and records.
    pub fn calls(&mut self, balance: &Balance, oddities: &Oddities) {
        self.put("entries", balance.entries);
        self.put("exits", balance.exits);
        self.put("tail_exits", balance.tail_exits);
        for (name, count) in [
            ("open_at_end", balance.open_at_end),
            ("declared_lost", balance.escaped),
            ("cut_by_loss", balance.cut),
            ("unwound", balance.unwound),
            ("moved", balance.moved),
            ("ends_open_at_start", balance.ends_open_at_start),
            ("ends_cut_by_loss", balance.ends_cut),
            ("ends_moved", balance.ends_moved),
            ("early_batches", oddities.early_batches),
            ("records_lost", oddities.lost),
            ("records_torn", oddities.torn),
            ("records_missing", oddities.missing),
            ("gaps", oddities.gaps),
            ("records_unknown", oddities.unknown),
            ("inversions", oddities.inversions),
            ("negative_durations", oddities.negative),
            ("stacks_given_up", oddities.stacks_given_up),
        ] {
            self.doubt(name, count);
        }
    }

    /// What became of generated packets.
    pub fn packets(&mut self, streams: &[Packets]) {
        if streams.is_empty() {
            return;
        }
        let sum = |count: fn(&Packets) -> u64| streams.iter().map(count).sum::<u64>();
        self.put("packets_sent", sum(|p| p.counts.sent));
        self.put("packets_received", sum(|p| p.counts.received));
        for (name, count) in [
            ("packets_lost", sum(|p| p.counts.lost)),
            ("packets_late", sum(|p| p.counts.late)),
            ("packets_duplicate", sum(|p| p.counts.duplicate)),
            ("packets_reordered", sum(|p| p.counts.reordered)),
            ("packets_corrupted", sum(|p| p.counts.corrupted)),
            ("packet_rows_unwritten", sum(|p| p.unwritten)),
        ] {
            self.doubt(name, count);
        }
    }

    pub fn matters(&self) -> impl Iterator<Item = &Fact> {
        self.0.iter().filter(|f| f.matters)
    }
}

impl Fact {
    pub fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Null => "not known".to_owned(),
            other => other.to_string(),
        }
    }
}

/// One object; of facts with one name a list.
impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seen: Vec<&str> = Vec::new();
        let mut fields: Vec<(&str, Value)> = Vec::new();
        for fact in &self.0 {
            if seen.contains(&fact.name) {
                continue;
            }
            seen.push(fact.name);
            let same = self.0.iter().filter(|f| f.name == fact.name);
            let mut values: Vec<Value> = same.map(|f| f.value.clone()).collect();
            let value = match values.len() {
                1 => values.remove(0),
                _ => Value::Array(values),
            };
            fields.push((fact.name, value));
        }
        serializer.collect_map(fields)
    }
}
