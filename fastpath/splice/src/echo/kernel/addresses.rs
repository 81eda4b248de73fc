//! Where a server that listens on every address can be reached from this machine.
use super::contract::mapped;
use crate::echo::EchoError;
use libbpf_rs::{MapCore, MapFlags};
use std::net::IpAddr;

/// Of this network namespace, as they are now: clients of addresses that come later are served like
/// those of other machines.
fn here() -> Result<Vec<IpAddr>, EchoError> {
    let all = nix::ifaddrs::getifaddrs();
    let all = all.map_err(EchoError::system(
        "asking for the addresses of this machine",
    ))?;
    let addresses = all.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    Ok(addresses.collect())
}

/// Fills the map; gives how many found no room.
pub(super) fn tell(map: &impl MapCore, only: Option<IpAddr>) -> Result<usize, EchoError> {
    let addresses = match only {
        Some(address) => vec![address],
        None => here()?,
    };
    let told = addresses.iter().filter(|address| {
        let value = 1u32.to_ne_bytes();
        map.update(&mapped(**address), &value, MapFlags::ANY)
            .is_ok()
    });
    Ok(addresses.len() - told.count())
}
