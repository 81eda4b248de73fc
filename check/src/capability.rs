//! One thing that the machine has or lacks.
use serde::Serialize;

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Verdict {
    Ok {
        found: String,
    },
    Missing {
        found: String,
        remedy: String,
    },
    /// Could not be found out; never taken for ok.
    Unknown {
        found: String,
        remedy: String,
    },
}

#[derive(Debug, Serialize)]
pub struct Capability {
    pub name: &'static str,
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Without it `record` does not work.
    pub needed_by_record: bool,
    pub purpose: &'static str,
    pub determined_by: &'static str,
}

impl Capability {
    pub(crate) fn new(
        name: &'static str,
        purpose: &'static str,
        determined_by: &'static str,
        verdict: Verdict,
    ) -> Capability {
        Capability {
            name,
            verdict,
            needed_by_record: false,
            purpose,
            determined_by,
        }
    }

    pub(crate) fn needed(mut self) -> Capability {
        self.needed_by_record = true;
        self
    }
}

impl Verdict {
    pub(crate) fn ok(found: impl Into<String>) -> Verdict {
        let found = found.into();
        Verdict::Ok { found }
    }

    pub(crate) fn missing(found: impl Into<String>, remedy: impl Into<String>) -> Verdict {
        let (found, remedy) = (found.into(), remedy.into());
        Verdict::Missing { found, remedy }
    }

    pub(crate) fn unknown(found: impl Into<String>, remedy: impl Into<String>) -> Verdict {
        let (found, remedy) = (found.into(), remedy.into());
        Verdict::Unknown { found, remedy }
    }
}
