//! Network devices that a back end of vhost-user serves, as QEMU is told of them.
use crate::accelerator::Accelerator;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct Nic {
    /// Of the back end, 107 bytes at most (unix(7)).
    pub socket: PathBuf,
    /// QEMU makes the socket, and waits there for the back end before it begins. Else it connects, and again each
    /// second when the back end goes.
    pub qemu_listens: bool,
    /// Pairs of queues; the driver uses as many as the machine has processors.
    pub queues: u16,
    /// Further properties of `virtio-net-pci`, such as `packed=on`.
    pub properties: Vec<String>,
}

impl Nic {
    pub fn new(socket: impl Into<PathBuf>) -> Nic {
        Nic {
            socket: socket.into(),
            qemu_listens: false,
            queues: 1,
            properties: Vec::new(),
        }
    }
}

/// The guest's memory is shared: back ends map it. Without KVM QEMU 7.2 crashes when the guest wants MSI-X.
pub(crate) fn arguments(nics: &[Nic], memory_mib: u32, accelerator: &Accelerator) -> Vec<String> {
    if nics.is_empty() {
        return Vec::new();
    }
    let mut all = vec![
        "-object".to_owned(),
        format!("memory-backend-memfd,id=mem,size={memory_mib}M,share=on"),
        "-numa".to_owned(),
        "node,memdev=mem".to_owned(),
    ];
    for (n, nic) in nics.iter().enumerate() {
        let who = match nic.qemu_listens {
            true => "server=on,wait=off",
            false => "reconnect=1",
        };
        let path = nic.socket.to_string_lossy().replace(',', ",,");
        let queues = nic.queues;
        let mut device = format!(
            "virtio-net-pci,netdev=n{n},mac=52:54:00:00:00:{n:02x},tx_queue_size=1024,\
             rx_queue_size=1024"
        );
        if accelerator.is_emulated() {
            device += ",vectors=0";
        }
        if queues > 1 {
            device += ",mq=on";
        }
        for property in &nic.properties {
            device += &format!(",{property}");
        }
        all.extend([
            "-chardev".to_owned(),
            format!("socket,id=c{n},path={path},{who}"),
            "-netdev".to_owned(),
            format!("vhost-user,id=n{n},chardev=c{n},queues={queues}"),
            "-device".to_owned(),
            device,
        ]);
    }
    all
}
