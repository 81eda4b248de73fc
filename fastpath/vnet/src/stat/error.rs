//! Why an answer is not shown.
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum StatError {
    #[error("the answer is of another version of hopscope")]
    Version(#[source] serde_json::Error),
    #[error("the answer has no {0}: another version of hopscope?")]
    Missing(&'static str),
    #[error(
        "no policies in shadow mode: run hopscope vnet set --shadows on, then let packets flow"
    )]
    NoShadows,
    #[error("{0}")]
    Io(#[from] io::Error),
}
