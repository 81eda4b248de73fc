//! The end of a measured process: what was added to it goes first, since it writes into its rings.
use super::Target;
use crate::live::LiveError;
use crate::live::install::Installed;
use crate::live::remove::Detached;

impl Target {
    /// What was added to it is detached with it; nothing is added any more.
    pub(in crate::recorder) fn take_additions(&mut self) {
        if let Some((_, beside)) = self.following.take() {
            self.additions = beside.take();
        }
    }

    /// What the user should know of the attach.
    pub(in crate::recorder) fn take_install_notes(&mut self) -> Vec<String> {
        let added = self.additions.iter_mut();
        let all = added.chain([&mut self.installed]);
        all.flat_map(|installed| std::mem::take(&mut installed.notes))
            .collect()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Installed> {
        self.additions.iter().chain([&self.installed])
    }

    /// Of [`Installed::restore`].
    ///
    /// # Errors
    /// Something of it is not restored.
    pub(in crate::recorder) fn restore(&mut self) -> Result<Detached, LiveError> {
        let mut done = Detached::default();
        let own = self.additions.iter_mut().chain([&mut self.installed]);
        // Whatever cannot be restored, the others are.
        let mut failed = None;
        for installed in own {
            match installed.restore() {
                Ok(restored) => done.join(restored),
                Err(e) => drop(failed.get_or_insert(e)),
            }
        }
        failed.map_or(Ok(done), Err)
    }

    /// Of [`Installed::take_away`].
    ///
    /// # Errors
    /// A table cannot be written.
    pub(in crate::recorder) fn take_away(&self, done: &mut Detached) -> Result<(), LiveError> {
        self.all()
            .try_for_each(|installed| installed.take_away(done))
    }

    /// Of [`Installed::take_children_away`].
    pub(in crate::recorder) fn take_children_away(&self) -> Detached {
        let mut done = Detached::default();
        self.all()
            .for_each(|installed| done.join(installed.take_children_away()));
        done
    }
}
