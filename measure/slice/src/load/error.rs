//! Why programs cannot run here.
use hopscope_event::slice::Point;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(
        "this kernel has no type information (/sys/kernel/btf/vmlinux): slicing needs a kernel with CONFIG_DEBUG_INFO_BTF: {0}"
    )]
    NoBtf(String),
    #[error(
        "loading BPF programs is not allowed: run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    NotAllowed,
    #[error("the kernel refused the programs: {what}; the verifier's words: {log}")]
    Refused { what: String, log: String },
    #[error(
        "no hook of this kernel stamps any of the chosen points with backend {backend} ({why}); `hopscope slice -L` lists what there is"
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
    #[error("{what}: {why}")]
    Bpf { what: &'static str, why: String },
}

impl LoadError {
    pub(super) fn bpf(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
        move |error| LoadError::Bpf {
            what,
            why: error.to_string(),
        }
    }
}
