//! What this kernel allows: which of its faults forbid which programs to take part.
use super::error::SessionError;
use crate::interpreters::{self, is_version_of};
use crate::readers::{self, Reason};
use crate::trial::{self, TrialResult, Weight};
use std::path::Path;

/// Whether the user lets this program take part in any case, under its name or that of another version.
pub(super) fn allows(allowed: &[String], program: &str) -> bool {
    let is_meant = |name: &String| is_version_of(program, name);
    allowed.iter().any(is_meant)
}

/// What this kernel allows, found out on connections of our own.
pub struct Kernel {
    /// Programs that ask FIONREAD would hang.
    pub hurts_fionread: bool,
    /// A thread that waits in recv is woken, and told EAGAIN, when another one may send.
    pub hurts_sharing: bool,
}

impl Kernel {
    pub fn try_out() -> Result<Kernel, SessionError> {
        let (mut hurts_fionread, mut hurts_sharing) = (false, false);
        for case in trial::deciding()? {
            let why = match &case.outcome {
                TrialResult::Ok(_) => continue,
                TrialResult::Broken(why) | TrialResult::Unknown(why) => why,
            };
            match case.weight {
                Weight::Vital => {
                    return Err(SessionError::Kernel {
                        name: case.name,
                        why: why.clone(),
                        means: case.means,
                    });
                }
                Weight::Fionread => hurts_fionread = true,
                Weight::Shared => hurts_sharing = true,
                Weight::Said | Weight::Waits => {}
            }
        }
        Ok(Kernel {
            hurts_fionread,
            hurts_sharing,
        })
    }

    fn must_refuse(&self, found: &Reason, allowed: &[String]) -> bool {
        self.hurts_fionread && !allows(allowed, &found.name)
    }

    /// Programs that are refused by name, whenever they come.
    pub(super) fn refused(&self, allowed: &[String]) -> Vec<String> {
        let known = readers::KNOWN.iter().map(|name| (*name).to_owned());
        if self.hurts_fionread {
            known.filter(|name| !allowed.contains(name)).collect()
        } else {
            Vec::new()
        }
    }

    /// Interpreters: their scripts may ask.
    pub(super) fn refused_versions(&self, allowed: &[String]) -> Vec<String> {
        let known = interpreters::NAMES.iter().map(|name| (*name).to_owned());
        if self.hurts_fionread {
            known.filter(|name| !allowed.contains(name)).collect()
        } else {
            Vec::new()
        }
    }

    /// Refuses a command by its program's file. What an interpreter runs may start others, and ask nothing: only
    /// its own connections stay on TCP.
    pub fn judge_command(&self, program: &Path, allowed: &[String]) -> Result<(), SessionError> {
        if let Some(found) = readers::judge_file(program)?
            && self.must_refuse(&found, allowed)
            && !found.depends_on_script
        {
            return Err(SessionError::Hangs(refusal(&found)));
        }
        Ok(())
    }
}

pub(super) fn refusal(found: &Reason) -> String {
    let allowed_if = if found.depends_on_script {
        "they do not"
    } else {
        "it only asks of other files"
    };
    format!(
        "{}: {}, which this kernel answers wrongly at joined sockets: it could wait for ever, \
         and is not joined (hopscope check splice; --allow {} if {allowed_if})",
        found.name, found.why, found.name
    )
}
