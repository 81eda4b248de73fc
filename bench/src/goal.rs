//! A headline figure against its goal.
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Goal {
    pub(crate) name: &'static str,
    pub(crate) measured: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    pub(crate) met: Option<bool>,
}

impl Goal {
    pub(crate) fn at_least(name: &'static str, measured: Option<f64>, goal: f64) -> Goal {
        Goal {
            name,
            measured,
            at_least: Some(goal),
            at_most: None,
            met: measured.map(|m| m >= goal),
        }
    }

    pub(crate) fn at_most(name: &'static str, measured: Option<f64>, goal: f64) -> Goal {
        Goal {
            name,
            measured,
            at_least: None,
            at_most: Some(goal),
            met: measured.map(|m| m <= goal),
        }
    }

    pub(crate) fn sign(&self) -> &'static str {
        if self.at_least.is_some() { ">=" } else { "<=" }
    }

    pub(crate) fn bound(&self) -> f64 {
        self.at_least.or(self.at_most).unwrap_or_default()
    }

    pub(crate) fn verdict(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not measured",
        }
    }
}
