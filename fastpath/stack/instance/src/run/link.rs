//! A device that goes down while it is used, or whose MTU changes. Until it is up again, frames to be sent are lost, and counted: TCP sends
//! again what was in them.
use crate::{LinkMtu, Ns};
use hopscope_netio::{PacketIo, PortError};
use hopscope_stack_engine::Engine;
use serde_json::{Value, json};

/// How often a device that is down is looked at: a packet socket does not tell when it is up again.
const LOOK_EVERY: Ns = Ns::from_ms(10);
/// And one that is up, should the kernel not notify: an XDP socket does not tell that its device was deleted (xsk_poll).
const LOOK_SELDOM: Ns = Ns::from_ms(1_000);

/// What is told of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChange {
    Down,
    Up { after: Ns, dropped: u64 },
    Mtu { from: u16, to: u16 },
}

/// Whom it is told to.
pub type OnLink = Box<dyn FnMut(LinkChange) + Send>;

pub(super) struct Link {
    tell: OnLink,
    down: Option<Down>,
    look_at: Option<Ns>,
    mtu: LinkMtu,
    downs: u64,
    dropped: u64,
    mtu_changes: u64,
}

struct Down {
    since: Ns,
    dropped_before: u64,
    /// Where frames that are lost are written to.
    slot: Box<[u8]>,
}

impl Link {
    pub(super) fn new(tell: OnLink, mtu: LinkMtu) -> Link {
        Link {
            tell,
            down: None,
            look_at: Some(Ns(0)),
            mtu,
            downs: 0,
            dropped: 0,
            mtu_changes: 0,
        }
    }

    pub(super) fn is_down(&self) -> bool {
        self.down.is_some()
    }

    /// When [`Link::look`] has something to do.
    pub(super) fn deadline(&self) -> Option<Ns> {
        self.look_at
    }

    /// Something happened to the device.
    pub(super) fn look_soon(&mut self, now: Ns) {
        self.look_at = Some(now);
    }

    /// Looks at the device, should it be time; its MTU, where that is another one now.
    ///
    /// # Errors
    /// It was deleted.
    pub(super) fn look(
        &mut self,
        now: Ns,
        port: &mut dyn PacketIo,
    ) -> Result<Option<u16>, PortError> {
        if self.look_at.is_none_or(|at| at > now) {
            return Ok(None);
        }
        if port.is_up()? {
            self.is_up(now);
            self.look_at = Some(now + LOOK_SELDOM);
        } else {
            self.went_down(now, port);
            self.look_at = Some(now + LOOK_EVERY);
        }
        let from = self.mtu.get();
        let changed = self.mtu.read(port)?;
        if let Some(to) = changed {
            self.mtu_changes += 1;
            (self.tell)(LinkChange::Mtu { from, to });
        }
        Ok(changed)
    }

    /// What the port said, but that its device is down, which is no error.
    pub(super) fn heard<T: Default>(
        &mut self,
        now: Ns,
        said: Result<T, PortError>,
        port: &dyn PacketIo,
    ) -> Result<T, PortError> {
        match said {
            Err(PortError::Down { .. }) => {
                self.went_down(now, port);
                self.look_soon(now);
                Ok(T::default())
            }
            said => said,
        }
    }

    fn went_down(&mut self, now: Ns, port: &dyn PacketIo) {
        if self.is_down() {
            return;
        }
        self.downs += 1;
        self.down = Some(Down {
            since: now,
            dropped_before: self.dropped,
            slot: vec![0; port.capabilities().max_frame_len].into(),
        });
        (self.tell)(LinkChange::Down);
    }

    fn is_up(&mut self, now: Ns) {
        if let Some(down) = self.down.take() {
            (self.tell)(LinkChange::Up {
                after: now.since(down.since),
                dropped: self.dropped - down.dropped_before,
            });
        }
    }

    /// Loses up to `most` of the engine's frames; how many.
    pub(super) fn lose(&mut self, now: Ns, engine: &mut Engine, most: usize) -> usize {
        let Some(down) = &mut self.down else {
            return 0;
        };
        let mut count = 0;
        while count < most && engine.transmit(now, &mut down.slot).is_some() {
            count += 1;
        }
        self.dropped += count as u64;
        count
    }

    pub(super) fn counts(&self) -> Value {
        json!({
            "is_up": !self.is_down(), "downs": self.downs, "dropped": self.dropped, "mtu_changes": self.mtu_changes,
        })
    }
}
