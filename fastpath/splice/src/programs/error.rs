//! Why programs cannot run here.
use hopscope_bpf::BpfError;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum SpliceError {
    #[error(transparent)]
    Bpf(#[from] BpfError),
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
}

impl SpliceError {
    /// For `map_err`.
    pub(crate) fn bpf(what: &'static str) -> impl Fn(libbpf_rs::Error) -> SpliceError {
        move |error| BpfError::call(what)(error).into()
    }

    pub(crate) fn missing(what: &'static str, name: &str) -> SpliceError {
        BpfError::missing(what, name).into()
    }

    pub(crate) fn call(what: &'static str, why: impl ToString) -> SpliceError {
        let why = why.to_string();
        BpfError::Call { what, why }.into()
    }
}
