//! Connections by a key that names no later one: events of a closed connection may still be under way
//! when its place is taken again.
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    connection: Option<T>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    pub(crate) fn insert(&mut self, connection: T) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                connection: None,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[at as usize];
        slot.connection = Some(connection);
        u64::from(slot.generation) << 32 | u64::from(at)
    }

    pub(crate) fn get(&mut self, key: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut(key as u32 as usize)?;
        (slot.generation == (key >> 32) as u32)
            .then_some(slot.connection.as_mut())
            .flatten()
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        self.get(key)?;
        let slot = &mut self.slots[key as u32 as usize];
        // The largest is the listener's and the like.
        slot.generation = (slot.generation + 1) % (u32::MAX - 1);
        self.free.push(key as u32);
        slot.connection.take()
    }

    /// Keys of those that are there.
    pub(crate) fn keys(&self) -> Vec<u64> {
        let all = self.slots.iter().enumerate();
        let there = all.filter(|(_, slot)| slot.connection.is_some());
        there
            .map(|(at, slot)| u64::from(slot.generation) << 32 | at as u64)
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
