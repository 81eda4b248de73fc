//! The recording's tables: files, functions, captures and refusals are noted once, however many processes share them.
use super::{Plan, PlanError};
use crate::instrument::capture::Capture;
use crate::instrument::capture::parse::Selection;
use crate::instrument::resolve::CannotCapture;
use crate::locate::signature::Debug;
use crate::locate::{self, Image, LocateError, MappedModule, basename};
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{FunctionEntry, FunctionId, Refusal};
use std::sync::Arc;

impl Plan {
    /// Taken out, to be put back: reading it borrows nothing of the plan.
    pub(super) fn debug(&mut self, image: &Image, module: ModuleIx) -> Option<Debug> {
        match self.debug.remove(&module) {
            Some(known) => known,
            None => image.debug(),
        }
    }

    /// Notes the captures of a function once, however many processes share it: where another process
    /// can only be captured from in another way, it is not.
    pub(super) fn captured(
        &mut self,
        id: FunctionId,
        (captures, refused): (Vec<Capture>, Vec<CannotCapture>),
    ) -> Vec<Capture> {
        let known = self.captures.iter().any(|row| row.function == id);
        let mut taken = Vec::new();
        let mut refused: Vec<_> = refused;
        for capture in captures.into_iter().map(|c| c.of(id)) {
            match known && !self.captures.contains(&capture.entry) {
                true => refused.push(CannotCapture {
                    capture: capture.entry.name,
                    why: "in another process it is captured in another way".into(),
                }),
                false => taken.push(capture),
            }
        }
        if !known {
            self.captures.extend(taken.iter().map(|c| c.entry.clone()));
        }
        for why in refused {
            if !self.not_captured.contains(&(id, why.clone())) {
                self.not_captured.push((id, why));
            }
        }
        taken
    }

    pub(super) fn check_captured(
        &self,
        pid: i32,
        selections: &[Selection],
    ) -> Result<(), PlanError> {
        for wanted in selections.iter().flat_map(|s| &s.captures) {
            let name = wanted.name();
            if self.captures.iter().any(|row| row.name == name) {
                continue;
            }
            let refused = self
                .not_captured
                .iter()
                .find(|(_, w)| w.capture == wanted.text);
            if let Some((function, why)) = refused {
                return Err(PlanError::NothingCaptured {
                    pid,
                    function: self.functions[function.0 as usize].name.clone(),
                    why: why.clone(),
                });
            }
        }
        Ok(())
    }

    pub(super) fn image(
        &mut self,
        pid: i32,
        module: &MappedModule,
    ) -> Result<(Arc<Image>, ModuleIx), LocateError> {
        if let Some((image, ix)) = self.images.get(&module.path)
            && image.is_mapped_by(pid, module)
        {
            return Ok((image.clone(), *ix));
        }
        let image = Arc::new(Image::open_mapped(pid, module)?);
        let ix = ModuleIx(self.modules.len() as u32);
        self.modules.push(ModuleEntry {
            ix,
            path: module.path.display().to_string(),
            build_id: image.build_id().to_owned(),
        });
        self.images.insert(module.path.clone(), (image.clone(), ix));
        Ok((image, ix))
    }

    pub(super) fn id(
        &mut self,
        image: &Image,
        module: ModuleIx,
        function: &locate::Function,
        name: String,
    ) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        let id = *self
            .ids
            .entry((module, function.svma, name.clone()))
            .or_insert(next);
        if id == next {
            let lines = self.lines.entry(module).or_insert_with(|| image.lines());
            let (file, line) = lines
                .as_ref()
                .and_then(|l| l.find(function.svma, function.size))
                .unzip();
            self.functions.push(FunctionEntry {
                id,
                module,
                name,
                svma: function.svma,
                size: function.size,
                file,
                line,
            });
        }
        id
    }

    pub(super) fn refuse_module(&mut self, module: &MappedModule, why: &LocateError) {
        self.refuse(basename(&module.path), "*", 0, why.to_string());
    }

    /// Notes a refusal once, however many processes share it. Whether it is new.
    pub fn refuse(&mut self, module: &str, name: &str, svma: u64, reason: String) -> bool {
        // Several functions that were inlined may begin with the same instruction.
        let (module, name) = (module.to_owned(), name.to_owned());
        let is_new = self.refused.insert((module.clone(), svma, name.clone()));
        if is_new {
            self.refusals.push(Refusal {
                module,
                name,
                svma,
                reason,
            });
        }
        is_new
    }
}
