//! Why programs cannot run here.
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(
        "loading BPF programs is not allowed: run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    NotAllowed,
    #[error("the kernel refused the programs: {what}; the verifier's words: {log}")]
    Refused { what: String, log: String },
    #[error("{path}: {source}", path = path.display())]
    Cgroup {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot attach to {path}: {why}", path = path.display())]
    Attach { path: PathBuf, why: String },
    #[error("{given} ports: {most} at most")]
    Ports { given: usize, most: usize },
    #[error("{what}: {why}")]
    Bpf { what: &'static str, why: String },
}

impl LoadError {
    pub(crate) fn bpf(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> LoadError {
        move |error| LoadError::Bpf {
            what,
            why: error.to_string(),
        }
    }

    pub(crate) fn missing(what: &'static str, name: &str) -> LoadError {
        LoadError::Bpf {
            what,
            why: format!("there is no {name}"),
        }
    }
}
