//! Looking at modules that a target loads happens beside the recorder: reading the symbols of a large
//! one takes seconds, in which rings would overflow. One look at a time for each target.
use crate::new_modules::Watch;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// What a look gives back: what is known now, and who may unwind measured functions.
type Looked = (Watch, Option<String>);

enum State {
    Idle(Box<Watch>),
    Looking(JoinHandle<Looked>),
    /// The last look panicked.
    Failed,
}

pub struct Looking {
    pid: i32,
    state: State,
}

/// Waited for at the end, when the target is restored.
const LAST_LOOK: Duration = Duration::from_secs(2);
const BETWEEN_LAST_LOOKS: Duration = Duration::from_millis(5);

impl Looking {
    pub fn new(pid: i32, watch: Watch) -> Looking {
        Looking {
            pid,
            state: State::Idle(Box::new(watch)),
        }
    }

    /// Begins a look when there is a reason to, and says what the last one found.
    pub fn poll(&mut self) -> Option<String> {
        let (state, found) = match std::mem::replace(&mut self.state, State::Failed) {
            State::Idle(watch) => match watch.is_due() {
                true => look(*watch),
                false => (State::Idle(watch), None),
            },
            State::Looking(look) if look.is_finished() => match look.join() {
                Ok((watch, found)) => (State::Idle(Box::new(watch)), found),
                Err(_) => (State::Failed, None),
            },
            state => (state, None),
        };
        self.state = state;
        found
    }

    /// Modules loaded meanwhile and not examined, as text. Waits for a look to end.
    pub fn not_looked_at(&mut self) -> Vec<String> {
        let began = Instant::now();
        while matches!(&self.state, State::Looking(look) if !look.is_finished())
            && began.elapsed() < LAST_LOOK
        {
            std::thread::sleep(BETWEEN_LAST_LOOKS);
        }
        if matches!(&self.state, State::Looking(look) if look.is_finished()) {
            self.poll();
        }
        let pid = self.pid;
        match &self.state {
            State::Idle(watch) => watch.not_looked_at(),
            State::Looking(_) => vec![format!(
                "process {pid}: a module loaded while recording was still being looked at for exceptions at the end: one that \
                 lets them pass through measured functions would have ended the target"
            )],
            State::Failed => vec![format!(
                "process {pid}: modules loaded while recording were not looked at for exceptions: looking failed by an error \
                 of hopscope"
            )],
        }
    }
}

fn look(watch: Watch) -> (State, Option<String>) {
    // Handed over once the thread is there: it is not lost with one that cannot be.
    let (to, from) = mpsc::channel::<Watch>();
    let looking = move || {
        let mut watch = from.recv().expect("is sent at once");
        let found = watch.look();
        (watch, found)
    };
    match Builder::new().name("modules".into()).spawn(looking) {
        Ok(thread) => {
            to.send(watch).expect("it waits");
            (State::Looking(thread), None)
        }
        Err(e) => {
            log::info!("modules are looked at between visits of the rings: {e}");
            let mut watch = watch;
            let found = watch.look();
            (State::Idle(Box::new(watch)), found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::body::hazards::Hazards;

    #[test]
    fn rings_are_not_kept_waiting() {
        let pid = std::process::id() as i32;
        // Nothing is known: all modules of this process are new.
        let hazards = Hazards::of(std::iter::empty());
        let watch = Watch::new(pid, &[], Vec::new(), Vec::new(), hazards, None);
        let mut looking = Looking::new(pid, watch);
        assert_eq!(looking.poll(), None);
        let is_beside = matches!(looking.state, State::Looking(_));
        assert!(is_beside, "looked at in the thread of the rings");
        while matches!(looking.state, State::Looking(_)) {
            std::thread::sleep(BETWEEN_LAST_LOOKS);
            looking.poll();
        }
        assert_eq!(looking.not_looked_at(), [""; 0]);
        assert!(matches!(looking.state, State::Idle(_)), "it is finished");
    }
}
