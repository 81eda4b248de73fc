//! Requests of the control socket, answered for all engines together by the first.
use crate::Ns;
use hopscope_serving::control::Answer;
use nix::sys::eventfd::EventFd;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Connections of one answer, of each engine.
const ROWS_MAX: usize = 100_000;
/// Until an engine that says nothing is left out.
const WAIT: Ns = Ns::from_ms(2_000);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Counters.
    Stats,
    /// Connections.
    Ss { limit: usize },
}

/// Where the first engine asks another, and that one answers.
#[derive(Default)]
pub struct Mail {
    waits: AtomicBool,
    asked: Mutex<Option<(u64, Request)>>,
    told: Mutex<Option<(u64, Value)>>,
}

impl Mail {
    fn ask(&self, number: u64, request: Request) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, request));
        self.waits.store(true, Ordering::Release);
    }

    fn told(&self, number: u64) -> Option<Value> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let told = told.as_ref().filter(|(of, _)| *of == number);
        told.map(|(_, value)| value.clone())
    }

    /// What is asked is answered, if anything is.
    pub(crate) fn turn(&self, tell: impl FnOnce(Request) -> Value) {
        if !self.waits.swap(false, Ordering::AcqRel) {
            return;
        }
        let asked = self
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((number, request)) = asked {
            let value = tell(request);
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, value));
        }
    }
}

/// What the first engine knows of the others.
pub struct Commands {
    others: Vec<(Arc<Mail>, Arc<EventFd>)>,
    /// The request that the others were asked, its number, and since when.
    asked: Option<(Vec<u8>, u64, Ns)>,
    number: u64,
}

impl Commands {
    #[must_use]
    pub fn new(others: Vec<(Arc<Mail>, Arc<EventFd>)>) -> Commands {
        Commands {
            others,
            asked: None,
            number: 0,
        }
    }

    /// `None`: not yet. `own` is what the first engine tells.
    pub(crate) fn answer(
        &mut self,
        line: &[u8],
        now: Ns,
        own: impl FnOnce(Request) -> Value,
        finish: impl FnOnce(Request, Vec<Value>) -> Value,
    ) -> Option<Answer> {
        let request: Request = match serde_json::from_slice(line) {
            Ok(request) => bounded(request),
            Err(error) => return Some(refused(&error.to_string())),
        };
        let mut parts = vec![];
        if !self.others.is_empty() {
            let is_new = self.asked.as_ref().is_none_or(|(asked, ..)| asked != line);
            if is_new {
                self.number += 1;
                self.asked = Some((line.to_vec(), self.number, now));
                for (mail, bell) in &self.others {
                    mail.ask(self.number, request);
                    let _ = bell.write(1);
                }
                return None;
            }
            let since = self.asked.as_ref().map_or(now, |(_, _, since)| *since);
            let told = self
                .others
                .iter()
                .filter_map(|(mail, _)| mail.told(self.number));
            parts.extend(told);
            if parts.len() < self.others.len() && now.since(since) < WAIT {
                return None;
            }
            self.asked = None;
        }
        parts.insert(0, own(request));
        Some(Answer {
            line: finish(request, parts).to_string(),
            refused: false,
        })
    }
}

fn bounded(request: Request) -> Request {
    match request {
        Request::Ss { limit } => Request::Ss {
            limit: limit.min(ROWS_MAX),
        },
        other => other,
    }
}

fn refused(error: &str) -> Answer {
    let error = format!("no request of hopscope stack: {error}");
    let line = json!({ "type": "error", "schema": 1, "error": error });
    Answer {
        line: line.to_string(),
        refused: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_engine_answers_for_all() {
        let other = Arc::new(Mail::default());
        let bell = Arc::new(EventFd::new().unwrap());
        let mut commands = Commands::new(vec![(other.clone(), bell)]);
        let line = br#"{"do":"stats"}"#;
        let mut ask = |now| {
            let finish = |_, parts: Vec<Value>| json!(parts);
            let own = |_| json!(1);
            commands.answer(line, Ns(now), own, finish).map(|a| a.line)
        };
        assert_eq!(ask(0), None);
        assert_eq!(ask(1), None);
        other.turn(|request| {
            assert_eq!(request, Request::Stats);
            json!(2)
        });
        assert_eq!(ask(2).as_deref(), Some("[1,2]"));
        // One that has ended is left out.
        assert_eq!(ask(3), None);
        assert_eq!(ask(4 + WAIT.0).as_deref(), Some("[1]"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let mut commands = Commands::new(Vec::new());
        for line in ["", "{}", r#"{"do":"reboot"}"#, r#"{"do":"ss"}"#] {
            let own = |_| json!(1);
            let answer = commands.answer(line.as_bytes(), Ns(0), own, |_, _| json!(1));
            assert!(answer.is_some_and(|answer| answer.refused), "{line}");
        }
    }

    /// Of the kept corpus of what others have written, those for the control socket.
    #[test]
    fn the_kept_corpus_is_answered() {
        let corpus = include_str!("../tests/bytes_of_others.txt");
        let lines = corpus
            .lines()
            .filter_map(|line| line.strip_prefix("control "));
        for line in lines {
            assert!(is_answered(line.as_bytes()).refused, "{line}");
        }
    }

    /// In one line of JSON, whatever was asked.
    fn is_answered(line: &[u8]) -> Answer {
        let own = |request| match request {
            Request::Ss { limit } => json!(limit),
            Request::Stats => json!(-1),
        };
        let finish = |_, parts: Vec<Value>| json!(parts);
        let answer = Commands::new(Vec::new()).answer(line, Ns(0), own, finish);
        let answer = answer.unwrap();
        assert!(!answer.line.contains('\n'), "{}", answer.line);
        let value: Value = serde_json::from_str(&answer.line).unwrap();
        let limit = value[0].as_u64().unwrap_or(0);
        assert!(limit <= ROWS_MAX as u64, "{limit}");
        assert_eq!(answer.refused, value["type"] == "error", "{}", answer.line);
        answer
    }

    proptest::proptest! {
        #[test]
        fn requests_are_answered(limit in proptest::num::u64::ANY, at in 0..40_usize, byte in proptest::num::u8::ANY) {
            let mut line = format!(r#"{{"do":"ss","limit":{limit}}}"#).into_bytes();
            proptest::prop_assert!(!is_answered(&line).refused);
            if let Some(changed) = line.get_mut(at) {
                *changed = byte;
            }
            is_answered(&line);
        }

        #[test]
        fn bytes_are_answered(line in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            is_answered(&line);
        }
    }
}
