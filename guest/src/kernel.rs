//! The kernel that is booted: what `scripts/install-vm` unpacks, below one folder.
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct Kernel {
    /// As `uname -r` gives it in the guest.
    pub release: String,
    pub image: PathBuf,
    pub config: PathBuf,
    pub modules: Vec<PathBuf>,
    /// What a [`Nic`](crate::Nic) needs, in the order in which they need each other.
    pub nic_modules: Vec<PathBuf>,
    dir: PathBuf,
}

/// None needs another.
const MODULES: &[&str] = &[
    "drivers/net/veth",
    "drivers/net/tun",
    "net/sched/cls_bpf",
    "net/sched/sch_ingress",
    "net/sched/sch_tbf",
];

const NIC_MODULES: &[&str] = &[
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
];

impl Kernel {
    /// # Errors
    /// [`Error::Kernel`]: the first file that is not there.
    pub fn find(dir: &Path) -> Result<Kernel> {
        let package = dir.join("package");
        let text = std::fs::read_to_string(&package).map_err(|_| Error::Kernel(package.clone()))?;
        let release = text.trim().trim_start_matches("linux-image-").to_owned();
        let kernel = dir.join("lib/modules").join(&release).join("kernel");
        let module = |name: &&str| kernel.join(format!("{name}.ko"));
        let found = Kernel {
            image: dir.join(format!("boot/vmlinuz-{release}")),
            config: dir.join(format!("boot/config-{release}")),
            modules: MODULES.iter().map(module).collect(),
            nic_modules: NIC_MODULES.iter().map(module).collect(),
            dir: dir.to_owned(),
            release,
        };
        let needed = [&found.image, &found.config];
        let modules = found.modules.iter().chain(&found.nic_modules);
        for path in needed.into_iter().chain(modules) {
            if !path.is_file() {
                return Err(Error::Kernel(path.clone()));
            }
        }
        Ok(found)
    }

    /// What its modules are built against.
    ///
    /// # Errors
    /// [`Error::Kernel`]: they do not exist.
    pub fn headers(&self) -> Result<PathBuf> {
        let headers = format!("usr/src/linux-headers-{}", self.release);
        let headers = self.dir.join(headers);
        match headers.join("Module.symvers").is_file() {
            true => Ok(headers),
            false => Err(Error::Kernel(headers)),
        }
    }
}
