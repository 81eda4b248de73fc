//! Frames from templates: for each protocol and size one is built before the first packet. Per
//! packet it is copied, then the flow's addresses and ports, the stamp and two checksums go in.
use super::PacketsError;
use super::checksum::{finish, finish_udp, sum};
use super::flow::{Family, FlowTable, Protocol};
use super::sizes::{FCS_BYTES, Sizes};
use super::stamp::STAMP_BYTES;

pub const HOP_LIMIT: u8 = 64;

/// What all frames of a run share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub source: [u8; 6],
    pub destination: [u8; 6],
}

#[derive(Debug, Clone)]
struct Template {
    bytes: Box<[u8]>,
    /// Of the IPv4 header but for addresses and checksum.
    ip_sum: u16,
    /// Of what the protocol's checksum covers but for addresses, ports, stamp and checksum.
    sum: u16,
}

/// Where things are in a frame of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub family: Family,
    pub protocol: Protocol,
}

impl Layout {
    pub fn addresses(self) -> std::ops::Range<usize> {
        match self.family {
            Family::V4 => 26..34,
            Family::V6 => 22..54,
        }
    }

    /// Start of the UDP, TCP or ICMP header.
    pub fn transport(self) -> usize {
        self.addresses().end
    }

    pub fn ports(self) -> usize {
        match self.protocol {
            // The identifier (RFC 792): type, code and checksum lie before it.
            Protocol::Icmp => self.transport() + 4,
            _ => self.transport(),
        }
    }

    pub fn checksum(self) -> usize {
        self.transport()
            + match self.protocol {
                Protocol::Udp => 6,
                Protocol::Tcp => 16,
                Protocol::Icmp => 2,
            }
    }

    /// First byte of the payload.
    pub fn stamp(self) -> usize {
        self.transport() + self.protocol.header_bytes()
    }

    /// Shortest frame with room for a stamp, with FCS.
    pub fn smallest(self) -> usize {
        self.stamp() + STAMP_BYTES + FCS_BYTES
    }

    /// ICMP over IPv4 alone has no pseudo header (RFC 792; RFC 4443, 2.3).
    pub fn has_pseudo_header(self) -> bool {
        (self.family, self.protocol) != (Family::V4, Protocol::Icmp)
    }
}

/// All frames that a run can send.
#[derive(Debug, Clone)]
pub struct Frames {
    flows: FlowTable,
    /// By protocol, as in [`Protocol::ALL`], then by size; empty where no flow needs the protocol.
    templates: Vec<Vec<Template>>,
}

impl Frames {
    /// # Errors
    /// When a size has no room for headers and stamp, or does not fit the port.
    pub fn new(
        flows: FlowTable,
        sizes: &Sizes,
        link: Link,
        max_frame_len: usize,
    ) -> Result<Frames, PacketsError> {
        let used = flows.protocols();
        let mut templates = Vec::new();
        for protocol in Protocol::ALL {
            let layout = Layout {
                family: flows.family,
                protocol,
            };
            let mut of_protocol = Vec::new();
            for (size, _) in sizes.0.iter().filter(|_| used.contains(&protocol)) {
                if *size < layout.smallest() {
                    return Err(PacketsError::TooShort {
                        size: *size,
                        protocol,
                        family: flows.family,
                        smallest: layout.smallest(),
                    });
                }
                if size - FCS_BYTES > max_frame_len {
                    return Err(PacketsError::TooLong {
                        size: *size,
                        largest: max_frame_len + FCS_BYTES,
                    });
                }
                of_protocol.push(Template::new(layout, size - FCS_BYTES, link));
            }
            templates.push(of_protocol);
        }
        Ok(Frames { flows, templates })
    }

    pub fn flows(&self) -> &FlowTable {
        &self.flows
    }

    /// Layouts of the frames that may come.
    pub fn layouts(&self) -> Vec<Layout> {
        let family = self.flows.family;
        let protocols = self.flows.protocols().into_iter();
        protocols
            .map(|protocol| Layout { family, protocol })
            .collect()
    }

    /// Writes a whole frame and returns its length. `slot` is at least as long as the largest.
    #[inline]
    pub fn write(
        &self,
        slot: &mut [u8],
        flow: u32,
        size: usize,
        stamp: [u8; STAMP_BYTES],
    ) -> usize {
        let row = self.flows.row(flow);
        let layout = Layout {
            family: self.flows.family,
            protocol: row.protocol,
        };
        let template = &self.templates[row.protocol as usize][size];
        let frame = &mut slot[..template.bytes.len()];
        frame.copy_from_slice(&template.bytes);

        let addresses = layout.addresses();
        let count = addresses.len();
        frame[addresses].copy_from_slice(&row.addresses[..count]);
        let ports = layout.ports();
        match row.protocol {
            Protocol::Icmp => frame[ports..ports + 2].copy_from_slice(&row.ports[..2]),
            _ => frame[ports..ports + 4].copy_from_slice(&row.ports),
        }
        let at = layout.stamp();
        frame[at..at + STAMP_BYTES].copy_from_slice(&stamp);

        // The stamp sums to zero and so never shows in a checksum.
        let mut total = u64::from(template.sum) + u64::from(row.port_sum);
        if layout.has_pseudo_header() {
            total += u64::from(row.address_sum);
        }
        let checksum = match row.protocol {
            Protocol::Udp => finish_udp(total),
            _ => finish(total),
        };
        let at = layout.checksum();
        frame[at..at + 2].copy_from_slice(&checksum);
        if layout.family == Family::V4 {
            let total = u64::from(template.ip_sum) + u64::from(row.address_sum);
            frame[24..26].copy_from_slice(&finish(total));
        }
        frame.len()
    }
}

impl Template {
    fn new(layout: Layout, len: usize, link: Link) -> Template {
        let mut bytes = vec![0; len];
        bytes[..6].copy_from_slice(&link.destination);
        bytes[6..12].copy_from_slice(&link.source);
        let transport = layout.transport();
        let behind_ip = (len - transport) as u16;
        let number = layout.protocol.number(layout.family);
        match layout.family {
            Family::V4 => {
                bytes[12..14].copy_from_slice(&[0x08, 0x00]);
                bytes[14] = 0x45;
                bytes[16..18].copy_from_slice(&(behind_ip + 20).to_be_bytes());
                // Don't fragment, identification 0: an atomic datagram (RFC 6864, 4.1).
                bytes[20] = 0x40;
                bytes[22] = HOP_LIMIT;
                bytes[23] = number;
            }
            Family::V6 => {
                bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
                bytes[14] = 0x60;
                bytes[18..20].copy_from_slice(&behind_ip.to_be_bytes());
                bytes[20] = number;
                bytes[21] = HOP_LIMIT;
            }
        }
        let header = &mut bytes[transport..];
        match layout.protocol {
            Protocol::Udp => header[4..6].copy_from_slice(&behind_ip.to_be_bytes()),
            Protocol::Tcp => {
                header[12] = 5 << 4;
                // PSH and ACK, as data of an open connection has.
                header[13] = 0x18;
                header[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
            }
            Protocol::Icmp => header[0] = if layout.family == Family::V4 { 8 } else { 128 },
        }
        // Counting bytes behind the stamp: a cut or shifted frame differs from what was sent.
        let fill = layout.stamp() + STAMP_BYTES;
        let rest = bytes[fill..].iter_mut().enumerate();
        rest.for_each(|(i, byte)| *byte = i as u8);

        let mut covered = sum(&bytes[transport..]);
        if layout.has_pseudo_header() {
            covered += u64::from(number) + u64::from(behind_ip);
        }
        Template {
            ip_sum: super::checksum::fold(sum(&bytes[14..34])),
            sum: super::checksum::fold(covered),
            bytes: bytes.into(),
        }
    }
}

#[cfg(test)]
mod tests;
