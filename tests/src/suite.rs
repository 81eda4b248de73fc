//! A test and what it needs of the machine.
use crate::Requirement;
use std::rc::Rc;
use std::time::Duration;

/// Each case runs in a process group of its own, so that a crash, a leaked child or a dead lock of
/// one cannot touch another.
pub struct Case {
    pub name: String,
    pub needs: Vec<Requirement>,
    /// Not beside any other case: it is about what else the machine does.
    pub alone: bool,
    /// Not beside another of these: it uses both processors, or a name that is global.
    pub in_turn: bool,
    /// Only at full counts, or by its name: what it is about, a shorter one tests at reduced counts.
    pub soak: bool,
    /// A case that takes longer is killed with all its children and counts as failed: a guard
    /// against hanging, far above what the case takes, never a speed limit.
    pub watchdog: Duration,
    pub run: Rc<dyn Fn() -> anyhow::Result<()>>,
}

impl Case {
    pub fn alone(&mut self) -> &mut Case {
        self.alone = true;
        self
    }

    pub fn in_turn(&mut self) -> &mut Case {
        self.in_turn = true;
        self
    }

    pub fn soak(&mut self) -> &mut Case {
        self.soak = true;
        self
    }

    pub fn watchdog(&mut self, seconds: u64) -> &mut Case {
        self.watchdog = Duration::from_secs(seconds);
        self
    }
}

#[derive(Default)]
pub struct Suite {
    pub cases: Vec<Case>,
}

impl Suite {
    /// Adds a test; it passes when `run` returns `Ok` without a panic.
    ///
    /// # Panics
    /// When the name is taken: two tests of one name would be reported as one.
    pub fn case(
        &mut self,
        name: impl Into<String>,
        needs: &[Requirement],
        run: impl Fn() -> anyhow::Result<()> + 'static,
    ) -> &mut Case {
        let name = name.into();
        assert!(
            self.cases.iter().all(|case| case.name != name),
            "two tests are called {name}"
        );
        self.cases.push(Case {
            name,
            needs: needs.to_vec(),
            alone: false,
            in_turn: false,
            soak: false,
            watchdog: Duration::from_secs(crate::counts().pick(300, 3600)),
            run: Rc::new(run),
        });
        self.cases.last_mut().expect("just pushed")
    }

    /// Adds each case whose name begins with `of` once more, as `to` with the rest of its name: it runs in `within`, with more
    /// `needs`. `which` says of a rest whether it is left out, and otherwise whether it runs only at full counts.
    pub fn again(
        &mut self,
        (of, to): (&str, &str),
        needs: &[Requirement],
        which: impl Fn(&str) -> Option<bool>,
        within: impl Fn(&dyn Fn() -> anyhow::Result<()>) -> anyhow::Result<()> + Copy + 'static,
    ) {
        for at in 0..self.cases.len() {
            let case = &self.cases[at];
            let Some(rest) = case.name.strip_prefix(of) else {
                continue;
            };
            let Some(soak) = which(rest) else {
                continue;
            };
            let (name, soak) = (format!("{to}{rest}"), case.soak || soak);
            let needs = [&case.needs[..], needs].concat();
            let (alone, in_turn) = (case.alone, case.in_turn);
            let (run, watchdog) = (case.run.clone(), case.watchdog);
            let again = self.case(name, &needs, move || within(&*run));
            (again.alone, again.in_turn) = (alone, in_turn);
            (again.soak, again.watchdog) = (soak, watchdog);
        }
    }
}
