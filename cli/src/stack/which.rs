//! Which `stack serve` is asked.
use hopscope_netio::PortName;
use hopscope_serving::control_client::{ControlClient, Server};
use std::path::{Path, PathBuf};

const SERVE: Server = Server {
    command: "stack serve",
    ending: ".stack-control",
    select: "--if PORT or --control PATH",
};

#[derive(clap::Args)]
pub(super) struct Which {
    /// The stack's --if; optional if only one runs in this network namespace
    #[arg(long = "if", value_name = "PORT")]
    interface: Option<PortName>,
    /// The stack's --control, if it was given one
    #[arg(long, value_name = "PATH", conflicts_with = "interface")]
    control: Option<PathBuf>,
}

impl Which {
    pub(super) fn open(&self) -> anyhow::Result<ControlClient> {
        let path = self.control.clone();
        let path = path.or_else(|| self.interface.as_ref().map(control_of));
        Ok(ControlClient::open(&SERVE, path)?)
    }
}

/// One for each port; names of devices have no slash.
pub(super) fn control_of(port: &PortName) -> PathBuf {
    path_of(port, SERVE.ending)
}

/// Where programs attach.
pub(super) fn programs_of(port: &PortName) -> PathBuf {
    path_of(port, ".stack")
}

fn path_of(port: &PortName, ending: &str) -> PathBuf {
    let name = port.to_string().replace(['/', ':'], "-");
    let run = Path::new("/run");
    let writable = nix::unistd::access(run, nix::unistd::AccessFlags::W_OK).is_ok();
    let dir = if writable {
        run.to_owned()
    } else {
        std::env::temp_dir()
    };
    dir.join(format!("hopscope-{name}{ending}"))
}
