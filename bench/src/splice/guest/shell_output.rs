//! What the guest's shell said, line by line.
use super::{KINDS, LOADS, ServerKind};
use crate::error::{Error, Result};
use crate::not_measured::NotMeasured;
use crate::splice::{released, request_rates};
use hopscope_compare::output::Output;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) standing: request_rates::All,
    pub(super) released: BTreeMap<ServerKind, released::Found>,
}

/// The module's own account at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Module {
    pub(super) connections: u64,
    pub(super) bytes: u64,
    /// Not ended when it was unloaded: memory lost.
    pub(super) left: u64,
}

impl Said {
    pub(super) fn servers(&mut self, text: &str, missing: &mut Vec<NotMeasured>) {
        for kind in KINDS {
            let name = kind.name();
            if text.lines().any(|line| line == format!("up {name}")) {
                continue;
            }
            let down = format!("down {name} ");
            let reason = text.lines().find_map(|line| line.strip_prefix(&down));
            missing.push(NotMeasured::new(
                format!("server {name} in the guest"),
                reason.unwrap_or("it said nothing"),
            ));
        }
    }

    pub(super) fn round(
        &mut self,
        round: usize,
        text: &str,
        output: &mut Output<'_>,
    ) -> Result<()> {
        for line in text.lines() {
            let wrong = || Error::no_summary("the guest", line);
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().ok_or_else(wrong);
            let (what, name, number, said) = (word()?, word()?, word()?, word()?);
            let kind = KINDS.into_iter().find(|kind| kind.name() == name);
            let kind = kind.ok_or_else(wrong)?;
            let number: u32 = number.parse().map_err(|_| wrong())?;
            let said: Value = serde_json::from_str(said).map_err(|_| wrong())?;
            let mut sample =
                json!({"what": what, "path": super::PATH, "round": round, "server": kind});
            match what {
                "standing" => {
                    let load = LOADS.into_iter().find(|load| load.connections == number);
                    let load = load.ok_or_else(wrong)?;
                    self.standing.entry((load, kind)).or_default().add(&said)?;
                    sample["connections"] = json!(load.connections);
                    sample["size"] = json!(load.size);
                    sample["said"] = said;
                }
                "released" => {
                    let found = self.released.entry(kind).or_default();
                    released::add(found, &said, f64::from(number))?;
                    sample["listen_overflows"] = json!(number);
                    for field in ["latency", "failed", "kernel"] {
                        sample[field] = said[field].clone();
                    }
                }
                _ => return Err(wrong()),
            }
            output.sample(sample)?;
        }
        Ok(())
    }
}

/// Of `… hop_echo: N connections, N bytes, N left`; none when it was not loaded.
pub(super) fn module(text: &str) -> Result<Option<Module>> {
    let Some(line) = text.lines().last() else {
        return Ok(None);
    };
    let (_, account) = line.split_once("hop_echo: ").unwrap_or_default();
    let numbers: Vec<u64> = account
        .split([' ', ','])
        .filter_map(|word| word.parse().ok())
        .collect();
    match *numbers.as_slice() {
        [connections, bytes, left] => Ok(Some(Module {
            connections,
            bytes,
            left,
        })),
        _ => Err(Error::no_summary("the module", line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_start_is_said() {
        let mut missing = Vec::new();
        let text = "up user\nup module\ndown user_mt no such mode\nup uring\nup kernel\n";
        Said::default().servers(text, &mut missing);
        let reasons: Vec<&str> = missing.iter().map(|one| one.reason.as_str()).collect();
        assert_eq!(reasons, ["no such mode", "it said nothing"]);
        assert!(missing[1].what.contains("splice"), "{missing:?}");
    }

    #[test]
    fn lines_become_samples() {
        let mut data = Vec::new();
        let mut output = Output::new("splice-guest", &mut data, true, None).unwrap();
        let line = "standing module 16 {\"requests\":80,\"seconds\":0.5,\"p50_ns\":10,\"p99_ns\":20,\"failed\":1,\"wrong\":2}\n";
        let mut said = Said::default();
        said.round(3, line, &mut output).unwrap();
        assert_eq!(said.standing[&(LOADS[1], ServerKind::Module)].failures, 3.0);
        for bad in [
            "standing module 17 {}",
            "standing none 16 {}",
            "other module 16 {}",
            "standing module 16 connect: refused",
            "standing module 16",
        ] {
            assert!(said.round(0, bad, &mut output).is_err(), "{bad}");
        }
        drop(output);
        let sample: Value = serde_json::from_slice(&data).unwrap();
        assert_eq!(sample["server"], "module");
        assert_eq!(
            (&sample["round"], &sample["connections"]),
            (&json!(3), &json!(16))
        );
    }

    #[test]
    fn the_modules_account() {
        let text = "[   10.650069] hop_echo: 1163 connections, 58067604 bytes, 0 left\n";
        let account = Module {
            connections: 1163,
            bytes: 58_067_604,
            left: 0,
        };
        assert_eq!(module(text).unwrap(), Some(account));
        assert_eq!(module("").unwrap(), None);
        assert!(module("hop_echo: loaded").is_err());
    }
}
