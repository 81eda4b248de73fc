//! Why programs cannot be loaded, attached or read.

#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    #[error(
        "loading BPF programs is not allowed: run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
    )]
    NotAllowed,
    #[error("the kernel refused the programs: {what}; the verifier's log: {log}")]
    Refused { what: String, log: String },
    /// A call of libbpf, or of bpf(2).
    #[error("{what}: {why}")]
    Call { what: &'static str, why: String },
}

impl BpfError {
    /// For `map_err`.
    pub fn call(what: &'static str) -> impl Fn(libbpf_rs::Error) -> BpfError {
        move |error| BpfError::Call {
            what,
            why: error.to_string(),
        }
    }

    /// With the cause behind libbpf's text, as its alternate form has it.
    pub fn with_cause(what: &'static str) -> impl Fn(libbpf_rs::Error) -> BpfError {
        move |error| BpfError::Call {
            what,
            why: format!("{error:#}"),
        }
    }

    pub fn missing(what: &'static str, name: &str) -> BpfError {
        BpfError::Call {
            what,
            why: format!("there is no {name}"),
        }
    }
}
