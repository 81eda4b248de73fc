//! Lengths in bytes that all Ethernet devices share.
pub(crate) const ETHERNET_HDR_LEN: usize = 14;
pub(crate) const VLAN_TAG_LEN: usize = 4;
/// An IP packet is at most 65,535 bytes long; with two tags.
pub(crate) const GSO_FRAME_LEN: usize = 65_535 + ETHERNET_HDR_LEN + 2 * VLAN_TAG_LEN;

/// The longest IP packet in a frame that a port has room for.
pub(crate) fn packet_len(max_frame_len: usize) -> usize {
    max_frame_len - ETHERNET_HDR_LEN - VLAN_TAG_LEN
}
