//! Connections by a key that no later one has: events of a closed connection may still be pending
//! when its slot is reused.

/// A key is below 2^56, for a [`crate::Token`]: the slot's index, and how often the slot was reused, modulo 2^24.
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

const GENERATIONS: u32 = 1 << 24;

fn key(generation: u32, at: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(at)
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub fn insert(&mut self, value: T) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                value: None,
            });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[at as usize];
        slot.value = Some(value);
        key(slot.generation, at)
    }

    pub fn get(&mut self, key: u64) -> Option<&mut T> {
        let slot = self.slots.get_mut(key as u32 as usize)?;
        (slot.generation == (key >> 32) as u32)
            .then_some(slot.value.as_mut())
            .flatten()
    }

    pub fn remove(&mut self, key: u64) -> Option<T> {
        self.get(key)?;
        let slot = &mut self.slots[key as u32 as usize];
        slot.generation = (slot.generation + 1) % GENERATIONS;
        self.free.push(key as u32);
        slot.value.take()
    }

    /// Keys of those that are there.
    pub fn keys(&self) -> Vec<u64> {
        let all = self.slots.iter().enumerate();
        let there = all.filter(|(_, slot)| slot.value.is_some());
        there
            .map(|(at, slot)| key(slot.generation, at as u32))
            .collect()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_no_later_value() {
        let mut slab = Slab::default();
        let (one, two) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(one), Some('a'));
        let three = slab.insert('c');
        assert_eq!(slab.get(one), None);
        assert_eq!(slab.remove(one), None);
        assert_eq!(slab.get(two).copied(), Some('b'));
        assert_eq!(slab.get(three).copied(), Some('c'));
        assert_eq!((slab.len(), slab.keys()), (2, vec![three, two]));
        assert_eq!(three >> 56, 0);
    }
}
