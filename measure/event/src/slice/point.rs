//! Where in the kernel a stamp is taken.
use core::fmt;
use serde::{Deserialize, Serialize};

macro_rules! points {
    ($($variant:ident = $id:literal $name:literal $what:literal),* $(,)?) => {
        /// A boundary on a packet's way, in the order in which a packet passes them. A virtual device
        /// hands the packet to its peer before its driver returns, hence the place of `RxDriver`;
        /// where the peer works on another processor, the time stamps may have another order.
        /// Values are part of the file format and of the contract with the kernel programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[repr(u8)]
        pub enum Point {
            $(#[doc = $what] $variant = $id),*
        }

        impl Point {
            pub const ALL: &'static [Point] = &[$(Point::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Point::$variant => $name),* }
            }

            /// What has just happened to the packet here, for people.
            pub const fn what(self) -> &'static str {
                match self { $(Point::$variant => $what),* }
            }
        }
    };
}

points! {
    TxSyscall = 0 "tx_syscall" "the sending system call was entered",
    TxTransport = 1 "tx_transport" "TCP or UDP was given the data",
    TxIpOut = 2 "tx_ip_out" "headers are built and IP's output is done",
    TxDevQueue = 3 "tx_dev_queue" "the device's queue was reached",
    TxQdiscEnqueue = 4 "tx_qdisc_enqueue" "the queueing discipline took the packet in",
    TxQdiscDequeue = 5 "tx_qdisc_dequeue" "the queueing discipline gave the packet out",
    TxDriver = 6 "tx_driver" "the driver was called",
    RxDriver = 7 "rx_driver" "the driver handed the packet to the stack",
    TxDone = 8 "tx_done" "the sending driver returned",
    RxCore = 9 "rx_core" "the core took it from the backlog or from GRO",
    RxIp = 10 "rx_ip" "IP's input is done and the socket found",
    RxTransport = 11 "rx_transport" "TCP or UDP began to process it",
    RxSocket = 12 "rx_socket" "it lies in the socket's queue",
    RxWaking = 13 "rx_waking" "the reader is being woken",
    RxSchedIn = 14 "rx_sched_in" "the reader runs",
    RxCopy = 15 "rx_copy" "the copy to the reader begins",
    RxCopied = 16 "rx_copied" "the data are copied",
    RxReceived = 17 "rx_received" "the socket's receive call is done",
    RxReturn = 18 "rx_return" "the receiving system call returns",
}

impl Point {
    /// Slots for stamps in a record; those above the last point are kept for later ones.
    pub const MAX: usize = 24;

    pub fn from_id(id: u8) -> Option<Point> {
        Point::ALL.get(usize::from(id)).copied()
    }

    pub fn from_name(name: &str) -> Option<Point> {
        Point::ALL
            .iter()
            .copied()
            .find(|point| point.name() == name)
    }

    pub const fn is_tx(self) -> bool {
        (self as u8) <= (Point::TxDriver as u8) || matches!(self, Point::TxDone)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_positions_and_names_lead_back() {
        assert!(Point::ALL.len() <= Point::MAX);
        for (at, point) in Point::ALL.iter().enumerate() {
            assert_eq!(*point as usize, at);
            assert_eq!(Point::from_id(at as u8), Some(*point));
            assert_eq!(Point::from_name(point.name()), Some(*point));
        }
        assert_eq!(Point::from_id(Point::ALL.len() as u8), None);
    }
}
