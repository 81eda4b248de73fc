use std::path::PathBuf;

/// Why there is no guest, or nothing to be read of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Of what `scripts/install-vm` unpacks.
    #[error("no {0} (scripts/install-vm)")]
    Kernel(PathBuf),
    #[error("no {program} (package {package})")]
    Program {
        program: &'static str,
        package: &'static str,
    },
    #[error("cannot {doing} {path}: {source}")]
    File {
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot start {program}: {source}")]
    Start {
        program: &'static str,
        source: std::io::Error,
    },
    #[error("{program} failed ({status}): {said}")]
    Failed {
        program: String,
        status: String,
        said: String,
    },
    #[error("a library of {program} is missing: {said}")]
    Library { program: PathBuf, said: String },
    /// What the guest handed over ends, or goes on, where it should not.
    #[error("{0}")]
    Said(String),
    #[error("no step is called {0}")]
    NoStep(String),
    /// `why`, and the last lines of both serial lines.
    #[error("{why}\nconsole:\n{console}\nsteps:\n{steps}\n")]
    Guest {
        why: String,
        console: String,
        steps: String,
    },
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File {
            doing,
            path,
            source,
        }
    }
}
