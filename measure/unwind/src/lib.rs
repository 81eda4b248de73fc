//! Unwind tables for functions that were copied elsewhere: `.eh_frame_hdr`, `.eh_frame` and exception tables (LSDA) for the
//! copies, made from those of the originals.
//!
//! Pure: an ELF file and a map of addresses in, bytes out. Formats: LSB, "Exception Frames"; DWARF 5, section 6.4; Itanium C++ ABI,
//! "Exception Handling Tables".
//!
//! [`Module`] reads the tables of a file, [`Tables`] collects those of the copies of one segment, [`debug_frame`] gives them to readers outside.
//! Nothing is approximated: what cannot be
//! converted exactly is [`Refused`].
#![forbid(unsafe_code)]

mod apart;
mod bytes;
mod cfi;
mod debug_frame;
mod expression;
mod locations;
mod lsda;
mod module;
mod piece;
mod pointer;
mod refused;
mod routine;
mod rows;
mod state;
mod tables;

pub use debug_frame::debug_frame;
pub use module::Module;
pub use piece::{Aside, Landing, Piece};
pub use refused::Refused;
pub use routine::{Routine, Row};
pub use tables::Tables;

/// Entry for fuzzers: every function of a file, as far as `.eh_frame` names them.
pub fn fuzz_module(bytes: &[u8]) {
    let Ok(file) = object::File::parse(bytes) else {
        return;
    };
    let Ok(module) = Module::read(&file, 0x10_0000) else {
        return;
    };
    for range in module.ranges() {
        let mut tables = Tables::new();
        let end = range.end - range.start;
        let map: Vec<(u64, u64)> = (0..end.min(1 << 12))
            .map(|n| (range.start + n, 2 * n))
            .collect();
        let aside = Aside {
            copy: 1 << 24..(1 << 24) + 8,
            svma: range.start + map.len() as u64 / 2,
            pushed: &[(1 << 24, 8), ((1 << 24) + 4, 16)],
        };
        let piece = Piece {
            original: range.clone(),
            copy: 0..2 * map.len() as u64,
            map: &map,
            pushed: &[(1, 8), (4, 0)],
            asides: &[aside],
            landings: &[],
        };
        let accepted = module.check(std::slice::from_ref(&range)).is_ok();
        let added = tables.add(&module, &[piece]).is_ok();
        assert!(accepted || !added, "refused and converted: {range:x?}");
        let len = tables.len();
        assert_eq!(tables.finish(0x1000).map(|bytes| bytes.len()), Ok(len));
    }
}
