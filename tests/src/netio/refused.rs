//! What cannot be opened says why in one line, with what to do.
use super::frames::open;
use super::veth::{self, ip};
use anyhow::{Result, ensure};
use hopscope_netio::Direction;

pub(super) fn run() -> Result<()> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    let expect = |name: &str, direction, expected: &str| -> Result<()> {
        let said = match open(name, direction) {
            Ok(_) => "it opened".to_owned(),
            Err(error) => error.to_string(),
        };
        ensure!(said == expected, "{name}: {said:?} instead of {expected:?}");
        Ok(())
    };
    let both = Direction::Both;
    for name in ["packet:nowhere", "xdp:nowhere"] {
        expect(
            name,
            both,
            "no network device named nowhere: `ip link` lists those of this network namespace",
        )?;
    }
    expect(
        "xdp:left:7",
        both,
        "left has no queue 7 (`ls /sys/class/net/left/queues`): Invalid argument (os error 22)",
    )?;
    let first = open("xdp:left", both)?;
    expect(
        "xdp:left",
        both,
        "queue 0 of left is in use by another program: another XDP socket is bound to it; choose \
         another queue",
    )?;
    drop(first);
    expect(
        "tap:left",
        both,
        "the name left is in use by another program: a device has it already, no TAP device of that kind; \
         choose another, or say multi_queue where several queues are wanted (ip tuntap)",
    )?;
    ip("link set right down")?;
    for name in ["packet:right", "xdp:right"] {
        expect(name, both, "right is down: `ip link set right up`")?;
    }
    ip("link set right mtu 9000 up")?;
    expect(
        "xdp:right",
        both,
        "a frame of 9018 bytes does not fit an XDP socket on right, which takes at most 3840: \
         lower the device's MTU, or use packet:DEVICE",
    )?;
    expect(
        "pcap:/nowhere/x.pcap",
        Direction::Receive,
        "/nowhere/x.pcap: No such file or directory (os error 2)",
    )?;
    expect(
        "wire:left",
        both,
        "\"wire:left\" names no port: packet:DEVICE (or DEVICE alone), xdp:DEVICE:QUEUE, \
         xdp-native:DEVICE:QUEUE, tap:NAME, pcap:FILE or mem:",
    )
}
