//! Lists of a table, bounded while they are read: a few bytes of JSON may be an element that takes
//! ten times as many, and what is allocated for a list that grows is up to three times that.
use super::Area;
use super::check::{FUNCTIONS_AT_MOST, MODULES_AT_MOST, SEGMENTS_AT_MOST, WORDS_AT_MOST};
use hopscope_event::counter::COUNTERS_MAX;
use hopscope_event::{
    ClockSync, CounterEntry, ProbeCost, ProcessEntry, ProcessIx, RecordingMeta, TscFrequency,
};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

struct List<T> {
    at_most: usize,
    _of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {} elements", self.at_most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            if list.len() == self.at_most {
                return Err(Error::invalid_length(list.len() + 1, &self));
            }
            // What has no room is an error, not the end of whoever reads it.
            if list.len() == list.capacity() {
                list.try_reserve(1).map_err(Error::custom)?;
            }
            list.push(element);
        }
        Ok(list)
    }
}

fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    at_most: usize,
) -> Result<Vec<T>, D::Error> {
    from.deserialize_seq(List {
        at_most,
        _of: PhantomData,
    })
}

pub(super) fn segments<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Area>, D::Error> {
    list(from, SEGMENTS_AT_MOST)
}

pub(super) fn modules<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    list(from, MODULES_AT_MOST)
}

/// What there is one of a function.
pub(super) fn functions<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    list(from, FUNCTIONS_AT_MOST)
}

pub(super) fn counters<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<CounterEntry>, D::Error> {
    list(from, COUNTERS_MAX)
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    list(from, WORDS_AT_MOST)
}

pub(super) fn meta<'de, D: Deserializer<'de>>(from: D) -> Result<RecordingMeta, D::Error> {
    Meta::deserialize(from)
}

pub(super) fn process<'de, D: Deserializer<'de>>(from: D) -> Result<ProcessEntry, D::Error> {
    Process::deserialize(from)
}

#[derive(serde::Deserialize)]
#[serde(remote = "RecordingMeta")]
struct Meta {
    hopscope_version: String,
    #[serde(deserialize_with = "words")]
    command_line: Vec<String>,
    host: String,
    kernel: String,
    cpu: String,
    cpus_online: u32,
    tsc_frequency: TscFrequency,
    tsc_invariant: bool,
    start: ClockSync,
    stride: u32,
    ring_records: u64,
    probe_cost: Option<ProbeCost>,
}

#[derive(serde::Deserialize)]
#[serde(remote = "ProcessEntry")]
struct Process {
    ix: ProcessIx,
    pid: i32,
    comm: String,
    #[serde(deserialize_with = "words")]
    command_line: Vec<String>,
}
