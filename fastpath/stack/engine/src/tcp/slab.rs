//! Things named by small indices that are used again.

#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = Some(value);
            return index;
        }
        self.entries.push(Some(value));
        (self.entries.len() - 1) as u32
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        if self.free.len() == self.entries.len() {
            self.entries = Vec::new();
            self.free = Vec::new();
        }
        Some(value)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)?.as_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    /// Of all for which `is` holds.
    pub(crate) fn indices(&self, is: impl Fn(&T) -> bool) -> impl Iterator<Item = u32> {
        let entries = (0..).zip(&self.entries);
        entries.filter_map(move |(index, entry)| entry.as_ref().filter(|e| is(e)).map(|_| index))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Option<T>>() + self.free.capacity() * 4) as u64
    }
}
