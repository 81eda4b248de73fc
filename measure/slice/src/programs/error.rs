//! Why programs cannot run here.
use hopscope_bpf::BpfError;
use hopscope_event::slice::Point;

#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    #[error(
        "this kernel has no type information (/sys/kernel/btf/vmlinux): slicing needs a kernel with CONFIG_DEBUG_INFO_BTF: {0}"
    )]
    NoBtf(String),
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error(
        "this kernel has no hook for any of the selected points with backend {backend} ({why}); `hopscope slice -L` lists hooks"
    )]
    NoHook { backend: &'static str, why: String },
    #[error("cannot attach to {hook} ({point}): {why}")]
    Attach {
        point: Point,
        hook: &'static str,
        why: String,
    },
    #[error("{slots} slots: the number must be a power of two from 64 to 1,048,576")]
    Slots { slots: u32 },
    #[error("a ring of {bytes} bytes: the size must be a power of two from 4,096 to 1 GiB")]
    Ring { bytes: u32 },
    #[error("event {name}: {why}")]
    Event { name: String, why: String },
    #[error("{what}: {source}")]
    Os {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
}
