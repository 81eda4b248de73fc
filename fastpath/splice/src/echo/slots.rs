//! Connections by a key that names no later one: events of a closed connection may still be under way
//! when its place is taken again.
use super::connection::Connection;

#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    connection: Option<Connection>,
}

impl Slots {
    pub(super) fn insert(&mut self, connection: Connection) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[at as usize];
        slot.connection = Some(connection);
        u64::from(slot.generation) << 32 | u64::from(at)
    }

    pub(super) fn get(&mut self, key: u64) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(key as u32 as usize)?;
        (slot.generation == (key >> 32) as u32)
            .then_some(slot.connection.as_mut())
            .flatten()
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<Connection> {
        self.get(key)?;
        let slot = &mut self.slots[key as u32 as usize];
        // The largest is the listener's and the like.
        slot.generation = (slot.generation + 1) % (u32::MAX - 1);
        self.free.push(key as u32);
        slot.connection.take()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
