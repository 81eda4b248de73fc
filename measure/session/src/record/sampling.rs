//! Recordings of a choice: each Nth run (`--every`), or only what lies around a trigger (`--flight`).
use super::RecordRequest;
use super::trigger::{EXIT, SIGNAL, When};
use crate::error::{Context, Result, refuse};
use hopscope_event::{FunctionEntry, FunctionId, Ns, TscFrequency, callee};
use hopscope_probe::locate::basename;
use hopscope_probe::plan::{CALLED_FROM, Plan};
use hopscope_probe::recorder::trigger::Trigger;
use nix::unistd::{AccessFlags, access};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What fires, as asked for.
pub(super) struct Asked {
    whens: Vec<(String, When)>,
    before: Duration,
    signalled: Arc<AtomicBool>,
}

/// Functions of this name: `NAME` or `MODULE!NAME`. In several processes they may be several.
pub(super) fn named(plan: &Plan, text: &str) -> Result<Vec<FunctionId>> {
    let is_it = |f: &&FunctionEntry| {
        let module = &plan.modules[f.module.0 as usize].path;
        f.name == text || format!("{}!{}", basename(module.as_ref()), f.name) == text
    };
    if text.contains(callee::UNKNOWN) {
        refuse!(
            "{text}: which function a call through a pointer has called is known once it was made; name the one that calls"
        );
    }
    let mut found: Vec<_> = plan.functions.iter().filter(is_it).map(|f| f.id).collect();
    if found.is_empty() {
        // Of which only the calls of some modules are measured.
        let all = plan.functions.iter();
        found.extend(all.filter(|f| is_called(plan, f, text)).map(|f| f.id));
    }
    if found.is_empty() {
        let hint = match plan.follows_loads {
            true => "what is loaded later cannot be named here",
            false => "give it with -f too (--dry-run lists them)",
        };
        refuse!(
            "{text} is not among the {} functions that will be measured; {hint}",
            plan.functions.len()
        );
    }
    Ok(found)
}

fn is_called(plan: &Plan, function: &FunctionEntry, text: &str) -> bool {
    let module = &plan.modules[function.module.0 as usize].path;
    let name = function.name.split(CALLED_FROM).next().unwrap_or_default();
    name.len() < function.name.len()
        && (name == text || format!("{}!{name}", basename(module.as_ref())) == text)
}

/// What a run begins with. Empty when none was named.
pub(super) fn roots(request: &RecordRequest, plan: &Plan) -> Result<Vec<FunctionId>> {
    let of_packets = |text: &String| matches!(When::parse(text), Ok(When::Packet { .. }));
    let mut triggers = request.triggers().iter().chain(&request.distress.calls);
    match &request.root {
        Some(_) if request.every.is_none() && !triggers.any(of_packets) => {
            refuse!(
                "--root goes with --every, and with 'packet > TIME' of --trigger and --detach-on"
            )
        }
        Some(root) => named(plan, root).with_context(|| "--root"),
        None => Ok(Vec::new()),
    }
}

impl Asked {
    /// Reads the triggers, and takes the signal over before anybody is told to send it.
    pub(super) fn of(request: &RecordRequest) -> Result<Asked> {
        let triggers = request.triggers().iter();
        let whens = triggers.map(|t| Ok((t.clone(), When::parse(t)?)));
        let asked = Asked {
            whens: whens.collect::<Result<_>>()?,
            before: request
                .flight
                .as_ref()
                .map_or(Duration::ZERO, |flight| flight.before),
            signalled: Arc::new(AtomicBool::new(false)),
        };
        if asked.has(&When::Signal) {
            let signalled = asked.signalled.clone();
            signal_hook::flag::register(signal_hook::consts::SIGUSR1, signalled)
                .with_context(|| "taking over SIGUSR1")?;
        }
        if request.flight.is_some() {
            asked.could_be_saved(&request.output)?;
        }
        Ok(asked)
    }

    fn has(&self, when: &When) -> bool {
        self.whens.iter().any(|(_, w)| w == when)
    }

    /// The first file is opened when something fires, which may be days from now.
    fn could_be_saved(&self, output: &Path) -> Result<()> {
        let dir = match output.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        access(dir, AccessFlags::W_OK | AccessFlags::X_OK).with_context(|| {
            let dir = dir.display();
            format!("files could not be made in {dir} when something fires; give another -o")
        })
    }

    pub(super) fn at_exit(&self) -> Option<String> {
        self.has(&When::Exit).then(|| EXIT.to_owned())
    }

    /// The recording begins. A signal that came before has nothing to be saved for; says so.
    pub(super) fn begin(&self) -> Option<String> {
        let early = self.signalled()?;
        let what = format!("{early} came before the recording began: nothing was saved for it");
        crate::status::say!("{what}");
        Some(what)
    }

    /// The trigger that came since this was asked.
    pub(super) fn signalled(&self) -> Option<String> {
        let fired = self.signalled.swap(false, Ordering::Relaxed);
        fired.then(|| SIGNAL.to_owned())
    }

    /// The triggers that are calls.
    pub(super) fn calls(
        &self,
        request: &RecordRequest,
        plan: &Plan,
        roots: &[FunctionId],
        frequency: TscFrequency,
    ) -> Result<Vec<Trigger>> {
        let mut calls = Vec::new();
        for (text, when) in &self.whens {
            let (text, functions, over) = match when {
                When::Signal | When::Exit => continue,
                When::Packet { .. } if roots.is_empty() => refuse!(
                    "--trigger {text:?}: while recording, a packet's time is that of the run that \
                     handles it; say what a run begins with: --root FUNCTION"
                ),
                When::Packet { over } => {
                    let root = request.root.as_deref().unwrap_or_default();
                    (format!("{text} (run of {root})"), roots.to_vec(), *over)
                }
                When::Call { function, over } => {
                    let functions = named(plan, function);
                    let functions = functions.with_context(|| format!("--trigger {text:?}"))?;
                    (text.clone(), functions, *over)
                }
            };
            self.would_be_held(&text, over)?;
            calls.push(Trigger {
                text,
                functions,
                ticks: frequency.ticks(over),
            });
        }
        Ok(calls)
    }

    /// The begin of a call that takes longer than the memory reaches back could not be saved.
    fn would_be_held(&self, text: &str, over: Ns) -> Result<()> {
        if u128::from(over.0) < self.before.as_nanos() {
            return Ok(());
        }
        let before = self.before;
        refuse!(
            "--trigger {text:?}: its calls begin before the {before:?} that are kept; \
             give a longer --flight"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_before_the_recording_begins_is_told_and_saves_nothing() {
        let asked = Asked {
            whens: Vec::new(),
            before: Duration::from_secs(1),
            signalled: Arc::new(AtomicBool::new(true)),
        };
        let told = asked.begin().unwrap_or_default();
        assert!(told.starts_with("SIGUSR1 came before"), "{told}");
        assert_eq!(asked.signalled(), None);
        asked.signalled.store(true, Ordering::Relaxed);
        assert_eq!(asked.signalled().as_deref(), Some(SIGNAL));
        assert_eq!(asked.begin(), None);
    }
}
