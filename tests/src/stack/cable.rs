//! A network namespace for this process alone: the stack at one end of a cable or a TAP device, the kernel at the other.
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::scratch;
use nix::sched::{CloneFlags, unshare};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

pub(super) const KERNEL: &str = "10.0.0.1";
pub(super) const STACK: &str = "10.0.0.2";
pub(super) const KERNEL_V6: &str = "fd00::1";
pub(super) const STACK_V6: &str = "fd00::2";

/// Nothing is left behind: the namespace and its devices go with the process.
pub(super) fn namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    // Addresses are there at once, without a look for others that have them.
    std::fs::write("/proc/sys/net/ipv6/conf/default/accept_dad", "0")?;
    ip("link set lo up")
}

/// Files of this case: emptied once, whoever asks.
pub(super) fn files() -> PathBuf {
    static FILES: OnceLock<PathBuf> = OnceLock::new();
    FILES.get_or_init(scratch).clone()
}

/// A way between the stack and the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A cable; the kernel leaves checksums and segmentation undone.
    Packet,
    /// Neither end leaves anything undone.
    PacketWhole,
    Xdp,
    Tap,
    TapWhole,
    /// Two queues, two engines.
    TapQueues,
}

impl Way {
    pub(super) const ALL: [Way; 6] = [
        Way::Packet,
        Way::PacketWhole,
        Way::Xdp,
        Way::Tap,
        Way::TapWhole,
        Way::TapQueues,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Packet => "packet",
            Way::PacketWhole => "packet_whole",
            Way::Xdp => "xdp",
            Way::Tap => "tap",
            Way::TapWhole => "tap_whole",
            Way::TapQueues => "tap_queues",
        }
    }

    /// Of `stack serve` and `stack connect`.
    pub(super) fn arguments(self) -> Vec<&'static str> {
        let own = match self {
            Way::Packet => &["--if=near"][..],
            Way::PacketWhole => &["--if=packet:near", "--no-offload"],
            Way::Xdp => &["--if=xdp:near"],
            Way::Tap => &["--if=tap:far"],
            Way::TapWhole => &["--if=tap:far", "--no-offload"],
            Way::TapQueues => &["--if=tap:far"],
        };
        [own, &["--addr=10.0.0.2/24", "--addr=fd00::2/64"]].concat()
    }

    /// Of `stack serve` alone.
    pub(super) fn engines(self) -> &'static str {
        match self {
            Way::TapQueues => "--engines=2",
            _ => "--engines=1",
        }
    }

    /// Makes the device that the kernel has its address on: `far`.
    pub(super) fn make(self) -> Result<()> {
        match self {
            Way::Packet | Way::PacketWhole | Way::Xdp => {
                ip("link add near type veth peer name far")?;
                // The kernel's own stack has nothing to say at the stack's end.
                std::fs::write("/proc/sys/net/ipv6/conf/near/disable_ipv6", "1")?;
                ip("link set near up")?;
                if self != Way::Packet {
                    for device in ["near", "far"] {
                        whole(device)?;
                    }
                }
            }
            Way::Tap | Way::TapWhole => ip("tuntap add far mode tap vnet_hdr")?,
            Way::TapQueues => ip("tuntap add far mode tap vnet_hdr multi_queue")?,
        }
        ip("link set far up")?;
        ip(&format!("address add {KERNEL}/24 dev far"))?;
        ip(&format!("address add {KERNEL_V6}/64 dev far"))
    }
}

/// Nothing is left undone on this device, and nothing merged.
pub(super) fn whole(device: &str) -> Result<()> {
    let words = [
        "-K", device, "tx", "off", "tso", "off", "gso", "off", "gro", "off",
    ];
    let out = run(Command::new("ethtool").args(words))?;
    ensure!(out.code == Some(0), "ethtool {device}: {}", out.stderr);
    Ok(())
}

pub(super) fn ip(arguments: &str) -> Result<()> {
    let out = run(Command::new("ip").args(arguments.split(' ')))?;
    ensure!(out.code == Some(0), "ip {arguments}: {}", out.stderr);
    Ok(())
}
