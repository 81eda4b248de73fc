//! The whole way of a file from its bytes to verdicts, for property tests.
use super::verdict;
use crate::locate::Image;
use std::path::Path;

/// Entry for fuzzers.
pub fn fuzz_image(bytes: &[u8]) {
    if let Ok(image) = Image::parse(Path::new("fuzz"), bytes.to_vec(), (0, 0)) {
        let _ = image.branch_targets();
        let reads = image.slot_reads();
        let called = image.got_slots();
        let called = called.iter().filter(|slot| reads.is_only_called(slot));
        let _ = (called.count(), image.exports(), image.dependencies());
        let (lines, debug) = (image.lines(), image.debug());
        for f in image.functions() {
            let _ = lines.as_ref().and_then(|lines| lines.find(f.svma, f.size));
            if let Some(debug) = &debug
                && let Some(signature) = debug.function(f.svma)
            {
                for ty in signature
                    .parameters
                    .iter()
                    .map(|p| p.ty)
                    .chain(signature.returns)
                {
                    let _ = (debug.kind(ty), debug.size(ty), debug.member(ty, "missing"));
                }
            }
            let _ = verdict::accept(&image, f, Default::default());
        }
    }
}
