//! Which `vnet serve` is asked.
use hopscope_serving::control_client::{ControlClient, Server};
use std::path::PathBuf;

const SERVE: Server = Server {
    command: "vnet serve",
    ending: ".control",
    select: "--socket PATH",
};

#[derive(clap::Args)]
pub(super) struct Which {
    /// The back end's --socket; optional if only one runs in this network namespace
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The back end's --control, if it was given one
    #[arg(long, value_name = "PATH", conflicts_with = "socket")]
    control: Option<PathBuf>,
}

impl Which {
    pub(super) fn open(&self) -> anyhow::Result<ControlClient> {
        let beside = |socket: &PathBuf| super::serve::control_of(socket);
        let path = self.control.clone();
        let path = path.or_else(|| self.socket.as_ref().map(beside));
        Ok(ControlClient::open(&SERVE, path)?)
    }
}
