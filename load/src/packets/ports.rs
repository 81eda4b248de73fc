//! The ports that a run uses.
use super::PacketsError;
use super::link::device_max_frame_len;
use super::run::Ports;
use hopscope_netio::{Direction, MemoryOptions, OpenOptions, PacketIo, PortName, memory_pair};

pub struct Opened {
    /// As the user named them.
    pub sender: String,
    pub receiver: Option<String>,
    tx: Box<dyn PacketIo>,
    rx: Option<Box<dyn PacketIo>>,
    threads: bool,
    /// Ports have room for VLAN tags, which our frames do not have.
    max_untagged: usize,
}

impl Opened {
    /// The same name twice is one port, but for memory: there it is the two ends of a cable.
    ///
    /// # Errors
    /// A port cannot be opened.
    pub fn open(
        tx: &PortName,
        rx: Option<&PortName>,
        threads: Option<u8>,
    ) -> Result<Opened, PacketsError> {
        let open = |name: &PortName, direction| {
            let options = OpenOptions {
                direction,
                ..OpenOptions::default()
            };
            name.open(options).map_err(PacketsError::opening(name))
        };
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let mut opened = Opened {
            sender: tx.to_string(),
            receiver: rx.map(ToString::to_string),
            tx: match rx {
                Some(rx) if rx == tx && *tx == PortName::Memory => {
                    let (a, b) = memory_pair(MemoryOptions::default());
                    let receiver = rx.to_string();
                    return Ok(Opened {
                        sender: tx.to_string(),
                        receiver: Some(receiver),
                        tx: Box::new(a),
                        rx: Some(Box::new(b)),
                        // Two threads that wait for each other gain nothing.
                        threads: threads == Some(2),
                        max_untagged: usize::MAX,
                    });
                }
                Some(rx) if rx == tx => open(tx, Direction::Both)?,
                _ => open(tx, Direction::Send)?,
            },
            rx: None,
            threads: false,
            max_untagged: [Some(tx), rx]
                .into_iter()
                .flatten()
                .filter_map(device_max_frame_len)
                .min()
                .unwrap_or(usize::MAX),
        };
        if let Some(rx) = rx.filter(|rx| *rx != tx) {
            opened.rx = Some(open(rx, Direction::Receive)?);
            opened.threads = threads.map_or(processors > 1, |n| n == 2);
        } else if threads == Some(2) && rx.is_some() {
            return Err(PacketsError::OneThread);
        }
        Ok(opened)
    }

    pub fn receives(&self) -> bool {
        self.receiver.is_some()
    }

    pub fn max_frame_len(&self) -> usize {
        let receiver = self.rx.as_ref().map(|rx| rx.capabilities().max_frame_len);
        let sender = self.tx.capabilities().max_frame_len;
        let sender = sender.min(self.max_untagged);
        receiver.map_or(sender, |receiver| receiver.min(sender))
    }

    pub fn ports(&mut self) -> Ports<'_> {
        match (&mut self.rx, self.receiver.is_some()) {
            (Some(rx), _) => Ports::Two {
                sender: self.tx.as_mut(),
                receiver: rx.as_mut(),
                threads: self.threads,
            },
            (None, true) => Ports::One(self.tx.as_mut()),
            (None, false) => Ports::SendOnly(self.tx.as_mut()),
        }
    }
}
