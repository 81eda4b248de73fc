//! Calls through pointers, recorded where they are made.
//!
//! Probes stand around the call, and know its caller alone: they record a function of their own for all such calls of one
//! function, [`UNKNOWN`] by name. Right behind its entry lies the address that the call leads to, a value with the number
//! [`CAPTURE`] ([`crate::CaptureMethod::Callee`]). Whoever takes records out of rings writes the callee's function, which
//! is in the table before, into the entry, its value and the end of the call. What stays as it was recorded is a call whose
//! callee is not known.
use crate::FunctionId;
use crate::table::{CaptureEntry, CaptureMethod, CapturePlace, FunctionEntry, ModuleIx};
use crate::value::number;
use alloc::{format, string::String};
use core::ops::Range;

/// Of a callee that is not known.
pub const UNKNOWN: &str = "[unknown callee]";

/// What the address is called among captured values.
pub const NAME: &str = "callee";

/// The number of the address among the values of its function.
pub const CAPTURE: u16 = number(CapturePlace::Entry, 0);

/// From the value that a probe stored, which has no bit 63: of an address it is that below.
pub const fn address(value: u64) -> u64 {
    ((value << 1) as i64 >> 1) as u64
}

/// A module of callees that lie in no file.
pub const NO_FILE: &str = "[no file]";

/// As it is shown: a part of the callee's calls, of the caller's time.
pub fn name(callee: &str, caller: &str) -> String {
    format!("{callee}{CALLED_BY}{caller}]")
}

const CALLED_BY: &str = " [called by ";

/// Whether a function is what another one calls: nothing selects it by its name.
pub fn is_call(function: &str) -> bool {
    function.contains(CALLED_BY)
}

/// The same calls of a callee that is known by now, at these addresses of its module.
pub fn named(
    calls: &FunctionEntry,
    id: FunctionId,
    callee: &str,
    module: ModuleIx,
    svma: Range<u64>,
) -> FunctionEntry {
    let caller = calls.name.strip_prefix(UNKNOWN).unwrap_or_default();
    FunctionEntry {
        id,
        module,
        name: format!("{callee}{caller}"),
        svma: svma.start,
        size: svma.end.saturating_sub(svma.start),
        file: None,
        line: None,
    }
}

/// The row of the address that is recorded with calls of `function`.
pub fn row(function: FunctionId) -> CaptureEntry {
    CaptureEntry {
        function,
        capture: CAPTURE,
        name: NAME.into(),
        bits: 64,
        signed: false,
        at: CapturePlace::Entry,
        method: CaptureMethod::Callee,
        elements_max: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_halves_come_back() {
        for whole in [0x0040_1000, 0x7fff_ffff_f000, 0xffff_ffff_ff60_0000] {
            // A probe stores it without its highest bit.
            assert_eq!(address(whole & !(1 << 63)), whole);
        }
    }

    #[test]
    fn a_callee_has_its_callers_name_behind_its_own() {
        let calls = FunctionEntry {
            id: FunctionId(1),
            module: ModuleIx(0),
            name: name(UNKNOWN, "a::b [clone .isra.0]"),
            svma: 1,
            size: 0,
            file: None,
            line: None,
        };
        let function = named(&calls, FunctionId(9), "rx", ModuleIx(3), 0x10..0x30);
        assert_eq!(function.name, name("rx", "a::b [clone .isra.0]"));
        assert!(is_call(&function.name) && !is_call("rx [called from nf]"));
        assert_eq!((function.module, function.size), (ModuleIx(3), 0x20));
    }
}
