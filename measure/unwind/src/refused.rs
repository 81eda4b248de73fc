//! Why a function's tables, or a whole file's, cannot be converted.

#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    #[error("its file is not for x86-64")]
    Machine,
    #[error("the unwind table .eh_frame cannot be read at {at:#x}: {why}")]
    EhFrame { at: u64, why: String },
    #[error("several entries of .eh_frame cover {svma:#x}")]
    Overlap { svma: u64 },
    #[error("its unwind entry at {svma:#x} has an unusual return address register ({register})")]
    ReturnRegister { svma: u64, register: u16 },
    #[error("its unwind rules at {svma:#x} use {what}")]
    Rule { svma: u64, what: &'static str },
    #[error("its unwind rules change at {svma:#x}, where no instruction begins")]
    Location { svma: u64 },
    #[error("its unwind tables have a pointer ({what}) of encoding {encoding:#04x}")]
    PointerEncoding { what: &'static str, encoding: u8 },
    #[error("its unwind tables have a pointer ({what}) that is relocated when the file is loaded")]
    Relocated { what: &'static str },
    #[error("its exception table at {svma:#x} cannot be read: {why}")]
    Lsda { svma: u64, why: &'static str },
    #[error("its landing pad at {pad:#x} lies outside the function")]
    LandingPadOutside { pad: u64 },
    #[error("the copy does not fit the original: {0}")]
    Pieces(&'static str),
    #[error("the tables lie too far from the copies, or are not aligned to 8 bytes")]
    Place,
    #[error("these are no unwind tables of copies")]
    NotOurs,
}
