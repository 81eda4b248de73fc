//! What every bench prints: sample lines while it runs, one summary line at the end; or the same
//! as a table for people. With `--save`, the lines also go to a results folder.
use crate::error::{Error, Result};
use crate::host::{During, Host};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

pub const SCHEMA: u32 = 1;

/// Where the output of one bench goes.
pub struct Output<'a> {
    bench: &'static str,
    data: &'a mut dyn Write,
    json: bool,
    saved: Option<(PathBuf, File)>,
    during: During,
}

/// Results of a bench: fields of its summary line, and the same for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Unit of each field or group of fields.
    pub unit: Value,
    /// An object.
    pub fields: Value,
    pub table: String,
    /// Everything the bench is there for was measured.
    pub complete: bool,
}

impl<'a> Output<'a> {
    /// `save` is a folder; the file in it is `BENCH.jsonl`.
    pub fn new(
        bench: &'static str,
        data: &'a mut dyn Write,
        json: bool,
        save: Option<&Path>,
    ) -> Result<Output<'a>> {
        let saved = match save {
            None => None,
            Some(dir) => {
                fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
                let path = dir.join(format!("{bench}.jsonl"));
                let file = File::create(&path).map_err(Error::file("create", &path))?;
                Some((path, file))
            }
        };
        Ok(Output {
            bench,
            data,
            json,
            saved,
            during: During::begin(),
        })
    }

    fn line(&mut self, value: &Value) -> Result<()> {
        if let Some((path, file)) = &mut self.saved {
            writeln!(file, "{value}").map_err(Error::file("write", path.as_path()))?;
        }
        if self.json {
            writeln!(self.data, "{value}")
                .and_then(|()| self.data.flush())
                .map_err(Error::Output)?;
        }
        Ok(())
    }

    /// One measurement; `fields` is an object.
    pub fn sample(&mut self, fields: Value) -> Result<()> {
        self.line(&with(json!({"type": "sample"}), fields))
    }

    /// The last line, or the table. True: everything was measured.
    pub fn summary(mut self, host: &Host, summary: Summary) -> Result<bool> {
        let during = self.during.end();
        let line = json!({
            "type": "summary", "schema": SCHEMA, "bench": self.bench, "unit": summary.unit, "host": host,
            "during": during,
        });
        self.line(&with(line, summary.fields))?;
        let text = format!("{}{during}\n\n{}", describe(host), summary.table);
        if let Some((path, _)) = &self.saved {
            let page = path.with_extension("md");
            let markdown = page_text(self.bench, host, &text);
            fs::write(&page, markdown).map_err(Error::file("write", &page))?;
        }
        if !self.json {
            let written = self.data.write_all(text.as_bytes());
            written.map_err(Error::Output)?;
        }
        Ok(summary.complete)
    }
}

/// An object with the fields of another, which replace its own of the same name.
pub fn with(mut object: Value, fields: Value) -> Value {
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object
}

/// What people read later, beside the lines that programs read.
fn page_text(bench: &str, host: &Host, text: &str) -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let words: Vec<String> = words.map(quoted).collect();
    let mitigations = if host.mitigations.is_empty() {
        "none".to_string()
    } else {
        host.mitigations.join("; ")
    };
    format!(
        "# bench {bench}\n\nEvery measurement: [{bench}.jsonl]({bench}.jsonl). Made by\n\
         `{program} {}`.\n\n```\n{text}```\n\nMitigations of the processor: {mitigations}.\n",
        words.join(" ")
    )
}

/// As a shell takes it.
fn quoted(word: String) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The machine in two lines.
fn describe(host: &Host) -> String {
    let [one, five, fifteen] = host.load_average;
    let tsc = host
        .tsc_hz
        .map_or(String::new(), |hz| format!(", TSC {:.3} GHz", hz / 1e9));
    let kind = if host.virtualised { "virtual" } else { "real" };
    format!(
        "{} ({} CPUs, {kind} machine, smt {}, governor {}){tsc}, Linux {}\n\
         load {one:.2} {five:.2} {fifteen:.2}, steal {:.2} % since boot\n",
        host.cpu, host.cpus_online, host.smt, host.governor, host.kernel, host.steal_percent
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_the_lines_and_a_page() {
        let dir = std::env::temp_dir().join(format!("hopscope-envelope-{}", std::process::id()));
        let mut data = Vec::new();
        let mut output = Output::new("attach", &mut data, false, Some(&dir)).unwrap();
        output.sample(json!({"n": 1})).unwrap();
        let summary = Summary {
            unit: json!({}),
            fields: json!({}),
            table: "the table\n".into(),
            complete: true,
        };
        output.summary(&Host::look(None), summary).unwrap();
        let lines = fs::read_to_string(dir.join("attach.jsonl")).unwrap();
        let page = fs::read_to_string(dir.join("attach.md")).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(lines.lines().count(), 2);
        let shown = String::from_utf8(data).unwrap();
        assert!(shown.ends_with("the table\n"));
        assert!(
            page.starts_with("# bench attach\n") && page.contains(&shown),
            "{page}"
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = ["--a", "seq 3", "it's", ""].map(|w| quoted(w.into()));
        assert_eq!(words, ["--a", "'seq 3'", "'it'\\''s'", "''"]);
    }

    #[test]
    fn lines_carry_type_schema_bench_unit_and_host() {
        let mut data = Vec::new();
        let mut output = Output::new("probe", &mut data, true, None).unwrap();
        output.sample(json!({"row": "x", "median": 1.5})).unwrap();
        let summary = Summary {
            unit: json!({"time": "tsc"}),
            fields: json!({"record_pair": 46.0}),
            table: String::new(),
            complete: true,
        };
        output.summary(&Host::look(Some(2.6e9)), summary).unwrap();
        let text = String::from_utf8(data).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0],
            json!({"type": "sample", "row": "x", "median": 1.5})
        );
        let last = &lines[1];
        assert_eq!(last["type"], "summary");
        assert_eq!(last["schema"], SCHEMA);
        assert_eq!(last["bench"], "probe");
        assert_eq!(last["record_pair"], 46.0);
        assert_eq!(last["host"]["tsc_hz"], 2.6e9);
        assert!(last["during"]["seconds"].is_number() && last["during"]["load_average"].is_array());
    }
}
