//! Part of what runs in one guest.
use super::guest::{Guest, Run};
use anyhow::Result;
use hopscope_tests::Requirement;

/// Steps of a guest, whose names no other part of it has, and what must hold of what they said.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) needs: &'static [Requirement],
    pub(super) steps: fn(&mut Guest) -> Result<()>,
    pub(super) holds: fn(&Run) -> Result<()>,
}
