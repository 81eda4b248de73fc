//! Raw records, one a line, in the order of each thread's ring.
use crate::recording::Names;
use crate::units::Scale;
use hopscope_event::{Record, RecordKind, ThreadIx, Tsc, Value};
use serde::Serialize;
use std::io::{self, Write};

#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub thread: ThreadIx,
    /// Position in the thread's ring since the recording began.
    pub index: u64,
    pub record: Record,
}

/// Writes events and the gaps between them, as text or JSON.
pub struct EventWriter<'a> {
    pub names: &'a Names<'a>,
    pub scale: Scale,
    pub start: Tsc,
    pub json: bool,
}

fn kind_name(record: Record) -> &'static str {
    match record.kind() {
        Some(RecordKind::Entry) => "entry",
        Some(RecordKind::Exit) => "exit",
        Some(RecordKind::TailExit) => "tail_exit",
        Some(RecordKind::Escape) => "escape",
        Some(RecordKind::Value) => "value",
        None => "unknown",
    }
}

impl EventWriter<'_> {
    pub fn titles(&self, out: &mut impl Write) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        writeln!(
            out,
            "{:>20} {:>8} {:>12} {:<9} {:>10}  function",
            format!("since start, {}", self.scale.suffix()),
            "thread",
            "record",
            "kind",
            "rsp, low"
        )
    }

    pub fn event(&self, out: &mut impl Write, event: Event) -> io::Result<()> {
        let Event {
            thread,
            index,
            record,
        } = event;
        let tid = self.names.thread_entry(thread).map_or(0, |t| t.tid);
        if let Some(value) = record.value() {
            return self.value(out, event, tid, value);
        }
        let time = self.scale.number(i128::from(Tsc(record.tsc) - self.start));
        if self.json {
            return self.json_event(out, event, tid, time);
        }
        writeln!(
            out,
            "{time:>20} {tid:>8} {index:>12} {:<9} 0x{:08x}  {}",
            kind_name(record),
            record.rsp_lo32(),
            self.names.qualified(record.function())
        )
    }

    /// A captured value has no time of its own: it was taken where its call began, loaded it or
    /// ended.
    fn value(&self, out: &mut impl Write, event: Event, tid: i32, value: Value) -> io::Result<()> {
        let function = event.record.function();
        let capture = self.names.capture(function, value.capture);
        let name = crate::values::name(capture, value);
        let function_name = self.names.qualified(function);
        let reading = value.counter();
        let content = reading
            .as_ref()
            .map_or(value.content, crate::values::of_counter);
        if !self.json {
            return writeln!(
                out,
                "{:>20} {tid:>8} {:>12} {:<9} {:>10}  {function_name}: {name} {}",
                "",
                event.index,
                "value",
                "",
                crate::values::text(capture, content),
            );
        }
        let mut line = crate::json_line::Object::new("value", &self.scale);
        line.put("thread", event.thread.0);
        line.put("tid", tid);
        line.put("index", event.index);
        line.put("function", function_name);
        line.put("function_id", function.0);
        line.put("capture", value.capture);
        match reading {
            Some(reading) => line.put("counter", reading.counter),
            None => line.put("element", value.element),
        }
        line.put("name", name);
        crate::values::json(&mut line, capture, content);
        crate::json_line::line(out, &line)
    }

    fn json_event(
        &self,
        out: &mut impl Write,
        event: Event,
        tid: i32,
        time: f64,
    ) -> io::Result<()> {
        #[derive(Serialize)]
        struct Line<'a> {
            r#type: &'static str,
            schema: u32,
            time: f64,
            time_unit: &'static str,
            tsc: u64,
            thread: u32,
            tid: i32,
            index: u64,
            kind: &'static str,
            function: &'a str,
            function_id: u32,
            rsp_lo32: u32,
        }
        let record = event.record;
        let line = Line {
            r#type: "event",
            schema: 1,
            time,
            time_unit: self.scale.suffix(),
            tsc: record.tsc,
            thread: event.thread.0,
            tid,
            index: event.index,
            kind: kind_name(record),
            function: &self.names.qualified(record.function()),
            function_id: record.function().0,
            rsp_lo32: record.rsp_lo32(),
        };
        crate::json_line::line(out, &line)
    }

    pub fn gap(
        &self,
        out: &mut impl Write,
        thread: ThreadIx,
        lost: u64,
        torn: u64,
    ) -> io::Result<()> {
        let tid = self.names.thread_entry(thread).map_or(0, |t| t.tid);
        if !self.json {
            return writeln!(out, "{:>20} {tid:>8} {lost} records lost, {torn} torn", "");
        }
        #[derive(Serialize)]
        struct Line {
            r#type: &'static str,
            schema: u32,
            thread: u32,
            tid: i32,
            lost: u64,
            torn: u64,
        }
        let line = Line {
            r#type: "gap",
            schema: 1,
            thread: thread.0,
            tid,
            lost,
            torn,
        };
        crate::json_line::line(out, &line)
    }
}
