//! Which `vnet serve` is asked.
use crate::control_client::{Asked, Kind};
use std::path::PathBuf;

const SERVE: Kind = Kind {
    command: "vnet serve",
    ending: ".control",
    select: "--socket PATH",
};

#[derive(clap::Args)]
pub(super) struct Which {
    /// The back end's --socket; optional if only one runs
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The back end's --control, if it was given one
    #[arg(long, value_name = "PATH", conflicts_with = "socket")]
    control: Option<PathBuf>,
}

impl Which {
    pub(super) fn open(&self) -> anyhow::Result<Asked> {
        let beside = |socket: &PathBuf| super::serve::control_of(socket);
        let path = self.control.clone();
        Asked::open(&SERVE, path.or_else(|| self.socket.as_ref().map(beside)))
    }
}
