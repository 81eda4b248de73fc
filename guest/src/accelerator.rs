//! What runs the guest's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accelerator {
    /// QEMU's own emulator (TCG); why there is nothing else.
    Emulated { reason: String },
    /// This machine's processor, by /dev/kvm. That it is there does not say that it runs a kernel which was not made
    /// for it: try.
    Kvm,
}

impl Accelerator {
    pub fn is_emulated(&self) -> bool {
        matches!(self, Accelerator::Emulated { .. })
    }

    pub(crate) fn arguments(&self) -> [&'static str; 4] {
        match self {
            Accelerator::Emulated { .. } => ["-accel", "tcg", "-cpu", "max"],
            Accelerator::Kvm => ["-accel", "kvm", "-cpu", "host"],
        }
    }
}

impl Default for Accelerator {
    /// The one that is the same everywhere.
    fn default() -> Accelerator {
        Accelerator::Emulated {
            reason: "not asked for".into(),
        }
    }
}
