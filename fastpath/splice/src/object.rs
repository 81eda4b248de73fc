//! Compiled programs, as the build put them down.

#[repr(align(8))]
pub(crate) struct Aligned<const N: usize>(pub(crate) [u8; N]);

/// The object of `bpf/NAME.bpf.c`, aligned as ELF structures must be.
macro_rules! aligned {
    ($name:literal) => {{
        const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"));
        static OBJECT: crate::object::Aligned<{ BYTES.len() }> = crate::object::Aligned(
            *include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")),
        );
        &OBJECT.0
    }};
}
pub(crate) use aligned;
