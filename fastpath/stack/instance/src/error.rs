//! Why an instance cannot start or continue.
use hopscope_netio::PortError;
use hopscope_serving::ServingError;
use hopscope_stack_engine::{ConfigError, SocketError};
use std::io;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Serving(#[from] ServingError),
    #[error(
        "{address} is the kernel's own on {device}: both stacks would answer; choose another, or `ip address del {address} dev {device}`"
    )]
    AddressInUse { address: IpAddr, device: String },
    #[error(
        "{address} is another stack's on {device}{whose}: both would answer; choose another address, or end that one"
    )]
    OtherStack {
        address: IpAddr,
        device: String,
        whose: String,
    },
    #[error(
        "an MTU of {asked} is beyond {device}'s, which is {most}: `ip link set {device} mtu {asked}`, or choose less"
    )]
    MtuBeyondDevice {
        asked: u16,
        device: String,
        most: usize,
    },
    #[error("cannot listen on {at}: {source}")]
    Listen { at: SocketAddr, source: SocketError },
    #[error("cannot connect to {to}: {source}")]
    Connect { to: SocketAddr, source: SocketError },
    #[error("{engines} engines need a port with as many queues: tap:NAME or packet:DEVICE")]
    Queues { engines: u16 },
    #[error("{doing}: {source}")]
    System {
        doing: &'static str,
        source: io::Error,
    },
}

impl InstanceError {
    pub(crate) fn system<E: Into<io::Error>>(
        doing: &'static str,
    ) -> impl FnOnce(E) -> InstanceError {
        move |source| InstanceError::System {
            doing,
            source: source.into(),
        }
    }
}
