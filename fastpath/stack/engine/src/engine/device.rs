//! The device's side: frames and time.
use super::state::{Engine, host, lower};
use crate::Ns;
use crate::frame::{Received, RxMeta, TxFrame};
use crate::ip::{IcmpError, Input, Packet};
use crate::wire::{protocol, tcp, udp};

impl Engine {
    /// Takes in one received frame, which may be GRO-sized.
    pub fn receive(&mut self, now: Ns, frame: &[u8], meta: RxMeta) -> Received {
        self.now = now;
        let input = self.ip.receive(now, frame, meta, &mut self.counters);
        self.take(now, input, meta.segment_bytes, false)
    }

    /// `looped`: it comes from here.
    fn take(&mut self, now: Ns, input: Input, segment_bytes: u16, looped: bool) -> Received {
        match input {
            Input::Reassembled(packet) => {
                let counters = &mut self.counters;
                let input = self.ip.receive_reassembled(now, &packet, looped, counters);
                self.take(now, input, 0, looped)
            }
            Input::Tcp(packet, segment) => self.receive_tcp(now, &packet, &segment, segment_bytes),
            Input::Error(error) => self.icmp_error(now, &error),
            Input::Udp(packet, datagram) => self.receive_udp(now, &packet, &datagram),
            Input::Done => Received::default(),
        }
    }

    /// Writes the next frame to be sent to the start of `slot`, or returns `None` where there is none now. `slot` must hold an MTU and the
    /// medium's header; one of 65,549 bytes and more is filled with segments for the device to cut, where [`crate::config::TxOffload`] allows it.
    pub fn transmit(&mut self, now: Ns, slot: &mut [u8]) -> Option<TxFrame> {
        self.now = now;
        if self.ip.has_frames()
            && let Some(frame) = self.ip.transmit(slot, &mut self.counters)
        {
            return Some(frame);
        }
        // In turn: bulk of one does not keep the other waiting.
        self.udp_first = !self.udp_first;
        let mut frame = None;
        if self.udp_first {
            frame = self.transmit_udp(now, slot);
        }
        if frame.is_none() {
            frame = self.tcp.transmit(host!(self, now), slot);
        }
        if frame.is_none() && !self.udp_first {
            frame = self.transmit_udp(now, slot);
        }
        // What was sent may have asked for a neighbour's address.
        if frame.is_none() && self.ip.has_frames() {
            return self.ip.transmit(slot, &mut self.counters);
        }
        frame
    }

    /// When [`Engine::advance`] has something to do, at the latest, and before now where that is at once; `None`: not before another call.
    #[must_use]
    pub fn poll_at(&self) -> Option<Ns> {
        let looped = self.has_looped().then_some(Ns(0));
        let due = [looped, self.ip.poll_at(), self.tcp.poll_at()];
        due.into_iter().flatten().min()
    }

    /// [`Engine::advance`] has packets to ourselves to receive.
    #[must_use]
    pub fn has_looped(&self) -> bool {
        self.ip.looped() > 0
    }

    /// Receives what was sent to ourselves before, and runs the timers that are due.
    pub fn advance(&mut self, now: Ns) {
        self.now = now;
        for _ in 0..self.ip.looped() {
            if let Some((packet, meta)) = self.ip.next_looped() {
                let counters = &mut self.counters;
                let input = self.ip.receive_looped(now, &packet, meta, counters);
                self.take(now, input, meta.segment_bytes, true);
            }
        }
        self.ip.advance(now, &mut self.counters);
        while let Some(error) = self.ip.next_unreachable() {
            self.icmp_error(now, &error);
        }
        self.tcp.advance(host!(self, now));
    }

    /// The device's MTU is another one from now on, in bytes of IP packets. Where it is lower, TCP's segments that are too long for it are
    /// sent again at once, in smaller ones: the device may have dropped them.
    pub fn set_mtu(&mut self, now: Ns, mtu: u16) {
        self.now = now;
        self.ip.set_link_mtu(mtu);
        self.tcp.sync_mtus(host!(self, now));
    }

    fn receive_tcp(
        &mut self,
        now: Ns,
        packet: &Packet,
        segment: &tcp::Segment,
        segment_bytes: u16,
    ) -> Received {
        let host = host!(self, now);
        Received {
            socket: self.tcp.receive(host, packet, segment, segment_bytes),
            payload_bytes: segment.payload.len() as u32,
        }
    }

    fn transmit_udp(&mut self, now: Ns, slot: &mut [u8]) -> Option<TxFrame> {
        if !self.udp.has_output() {
            return None;
        }
        let frame = self.udp.transmit(lower!(self, now), slot);
        self.tell_changed();
        frame
    }

    fn receive_udp(&mut self, now: Ns, packet: &Packet, datagram: &udp::Datagram) -> Received {
        let received = self.udp.receive(lower!(self, now), packet, datagram);
        self.tell_changed();
        received
    }

    fn icmp_error(&mut self, now: Ns, error: &IcmpError) -> Received {
        match error.protocol {
            protocol::TCP => self.tcp.icmp_error(host!(self, now), error),
            protocol::UDP => {
                self.udp.icmp_error(lower!(self, now), error);
                self.tell_changed();
            }
            _ => {}
        }
        Received::default()
    }
}
