//! Why a function is not measured. A refusal is a result: each names its reason.
use crate::instrument::asm::LinkError;
use crate::locate::Known;
use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A name whose relocation or timing is known to break programs.
    NeverTouch(&'static str),
    NoSize,
    NoRoom {
        bytes: u64,
    },
    Undecodable {
        svma: u64,
    },
    /// A direct branch from anywhere in the module lands inside the bytes to be replaced.
    BranchIntoPatch {
        svma: u64,
    },
    /// A call ends inside the bytes to be replaced, so a return address may point into them.
    CallInPatch,
    /// A branch of the function lands between two decoded instructions: data in code, or
    /// overlapping instructions.
    BranchIntoInstruction {
        svma: u64,
    },
    /// `call` into its own body (get-PC idiom, retpoline): depends on where it runs.
    CallsOwnBody {
        svma: u64,
    },
    UsesGs,
    /// `xbegin`, far branch, `iret`: nothing a copy can be trusted with.
    UnsupportedInstruction {
        mnemonic: String,
    },
    /// Landing pads need unwind tables for the copy: why it has none.
    Lsda(NoTables),
    /// An exception or the end of a thread could pass through it: who does that, and why its copy has no unwind tables.
    MayUnwind(Arc<str>, NoTables),
    /// The same, and its tables cannot be made from those of the original.
    UnwindTables(hopscope_unwind::Refused),
    /// The code's own runtime looks its return addresses up.
    StackWalker(&'static str),
    /// Calls a function that inspects its return address (dlsym, dlopen …).
    CallerSensitive(String),
    /// A restartable sequence (linux/rseq.h) is tied to the addresses of the original.
    RestartableSequence,
    /// An instruction that may fault, which something looks up by its address.
    KnownByAddress {
        svma: u64,
        by: Known,
    },
    OutOfRange {
        svma: u64,
    },
    IndirectJumpWithShadowStack,
    TooLarge,
    /// Its unwind entry begins with a frame in place (a `.cold` part under another name, a label
    /// within hand-written code).
    NotCalled,
    /// Its copy refers to something that is out of reach of where it lies.
    NotLinked(LinkError),
    /// Nobody can be led into its copy.
    NoSlot(NoSlot),
}

/// Why no GOT slot leads into a copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NoSlot {
    Nobody,
    /// Of this module: its address would be seen, and compared.
    ReadOtherwise(Arc<str>),
    /// The process cannot be read.
    Unknown(Arc<str>),
}

impl fmt::Display for NoSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSlot::Nobody => write!(f, "no module that is asked for calls it through a GOT slot"),
            NoSlot::ReadOtherwise(module) => write!(
                f,
                "{module} does not only call through its GOT slot: a copy's address would be seen"
            ),
            NoSlot::Unknown(why) => write!(f, "GOT slots cannot be read: {why}"),
        }
    }
}

/// Why unwinders cannot be given tables of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NoTables(Option<Arc<str>>);

impl NoTables {
    pub fn because(why: &str) -> NoTables {
        NoTables(Some(why.into()))
    }
}

impl fmt::Display for NoTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its copy would have no unwind tables")?;
        self.0.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NeverTouch(why) => write!(f, "never touched: {why}"),
            Refusal::NoSize => write!(f, "its size is not known"),
            Refusal::NoRoom { bytes } => {
                write!(
                    f,
                    "too short: {bytes} bytes up to the next function, the jump needs 5"
                )
            }
            Refusal::Undecodable { svma } => write!(f, "bytes at {svma:#x} are no instruction"),
            Refusal::BranchIntoPatch { svma } => {
                write!(
                    f,
                    "something branches to {svma:#x}, inside the bytes the jump replaces"
                )
            }
            Refusal::CallInPatch => write!(f, "a call returns into the bytes the jump replaces"),
            Refusal::BranchIntoInstruction { svma } => {
                write!(
                    f,
                    "a branch to {svma:#x} lands inside an instruction (data in code?)"
                )
            }
            Refusal::CallsOwnBody { svma } => {
                write!(
                    f,
                    "calls into its own body at {svma:#x}: depends on its address"
                )
            }
            Refusal::UsesGs => write!(f, "uses %gs, which probes need"),
            Refusal::UnsupportedInstruction { mnemonic } => {
                write!(f, "contains {mnemonic}, which cannot be relocated")
            }
            Refusal::Lsda(why) => write!(f, "has exception landing pads (LSDA), and {why}"),
            Refusal::MayUnwind(who, why) => write!(f, "may be unwound: {who}; {why}"),
            Refusal::UnwindTables(why) => write!(f, "may be unwound, and {why}"),
            Refusal::StackWalker(what) => write!(f, "{what}"),
            Refusal::CallerSensitive(callee) => {
                write!(f, "calls {callee}, which uses its return address")
            }
            Refusal::RestartableSequence => {
                write!(
                    f,
                    "contains a restartable sequence, which is tied to where it lies"
                )
            }
            Refusal::KnownByAddress { svma, by } => {
                write!(
                    f,
                    "its instruction at {svma:#x} accesses memory and is known by its address to {} (a table of faults?)",
                    by.as_str()
                )
            }
            Refusal::OutOfRange { svma } => {
                write!(
                    f,
                    "refers to {svma:#x}, too far from where the copy can lie"
                )
            }
            Refusal::IndirectJumpWithShadowStack => {
                write!(
                    f,
                    "has an indirect jump and the process runs with a shadow stack"
                )
            }
            Refusal::TooLarge => write!(f, "larger than 16 MiB"),
            Refusal::NotLinked(why) => write!(f, "its copy cannot be linked: {why}"),
            Refusal::NoSlot(why) => why.fmt(f),
            Refusal::NotCalled => write!(
                f,
                "not a whole function: it is entered with a stack frame in place"
            ),
        }
    }
}

impl Refusal {
    /// The function could be measured if nothing had to be written to its entry.
    pub fn is_of_the_entry(&self) -> bool {
        matches!(
            self,
            Refusal::NoRoom { .. } | Refusal::BranchIntoPatch { .. } | Refusal::CallInPatch
        )
    }

    /// The reason without addresses and sizes: the same text for all functions that it holds for.
    pub fn kind(&self) -> String {
        let kind = match self {
            Refusal::NoRoom { .. } => "too short for the jump, which needs 5 bytes",
            Refusal::Undecodable { .. } => "contains bytes that are no instruction",
            Refusal::BranchIntoPatch { .. } => {
                "something branches into the bytes the jump replaces"
            }
            Refusal::BranchIntoInstruction { .. } => {
                "a branch lands inside an instruction (data in code?)"
            }
            Refusal::CallsOwnBody { .. } => "calls into its own body: depends on its address",
            Refusal::KnownByAddress { .. } => {
                "an instruction that accesses memory is known by its address (a table of faults?)"
            }
            Refusal::UnwindTables(_) => "may be unwound, and its unwind tables cannot be converted",
            Refusal::OutOfRange { .. } => "has a reference out of range of its copy",
            other => return other.to_string(),
        };
        kind.to_owned()
    }

    /// A word to group refusals by.
    pub fn class(&self) -> &'static str {
        match self {
            Refusal::NeverTouch(_) => "never-touch",
            Refusal::NoSize => "no-size",
            Refusal::NoRoom { .. } => "too-short",
            Refusal::Undecodable { .. } => "undecodable",
            Refusal::BranchIntoPatch { .. } => "branch-into-patch",
            Refusal::CallInPatch => "call-in-patch",
            Refusal::BranchIntoInstruction { .. } => "branch-into-instruction",
            Refusal::CallsOwnBody { .. } => "calls-own-body",
            Refusal::UsesGs => "uses-gs",
            Refusal::UnsupportedInstruction { .. } => "unsupported-instruction",
            Refusal::Lsda(_) => "lsda",
            Refusal::MayUnwind(..) => "may-unwind",
            Refusal::UnwindTables(_) => "unwind-tables",
            Refusal::StackWalker(_) => "stack-walker",
            Refusal::CallerSensitive(_) => "caller-sensitive",
            Refusal::RestartableSequence => "restartable-sequence",
            Refusal::KnownByAddress { .. } => "known-by-address",
            Refusal::OutOfRange { .. } => "out-of-range",
            Refusal::IndirectJumpWithShadowStack => "shadow-stack",
            Refusal::TooLarge => "too-large",
            Refusal::NotCalled => "not-called",
            Refusal::NotLinked(_) => "not-linked",
            Refusal::NoSlot(_) => "no-slot",
        }
    }
}
