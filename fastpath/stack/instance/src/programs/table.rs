//! What programs are told of their sockets without asking: a file in memory with a row for each, which the instance alone can write,
//! and never reads. It is one for all of them, as `/proc/net/tcp` is: sockets go from one program to another.
use super::wire::Name;
use hopscope_stack_abi::address;
use nix::libc;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::collections::VecDeque;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::mem::offset_of;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

/// Rows at most: 20 MiB of addresses in each process, and as much memory as sockets have been.
pub const ROWS_MAX: u32 = 1 << 18;
/// Some are never the next one's at once.
const SPARE: u32 = 256;
/// Sockets at most, whoever has them.
pub const SOCKETS_MAX: u32 = ROWS_MAX - SPARE;
/// Generations, a mask: programs keep them in 31 bits.
pub const GENERATIONS: u32 = u32::MAX >> 1;
/// `struct sockaddr_in6` (ip(7), ipv6(7)).
const ADDRESS: usize = 28;

/// All numbers are of this machine's byte order; the words are written and read whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    /// Of the socket that the row is of, or was last.
    pub generation: u32,
    /// [`State`].
    pub state: u32,
    /// `struct sockaddr`; of length 0 where there is none.
    pub local_len: u32,
    pub peer_len: u32,
    pub local: [u8; ADDRESS],
    pub peer: [u8; ADDRESS],
    pub ipv6: u32,
    /// [`Datagrams`]; of TCP 0.
    pub datagrams: u32,
}

pub const ROW_BYTES: usize = size_of::<Row>();
pub const STATE_AT: usize = offset_of!(Row, state);
pub const DATAGRAMS_AT: usize = offset_of!(Row, datagrams);
const _: () = assert!(ROW_BYTES == 80 && STATE_AT == 4 && align_of::<Row>() == 4);

/// What a socket is, in one word: the phase, whether its peer's end has come, errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub phase: Phase,
    /// All bytes of the peer are in the pair: its end is the peer's.
    pub ended: bool,
    /// What its connection ended with.
    pub errno: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Nobody's.
    Free,
    Bound,
    Listening,
    Connecting,
    Connected,
}

/// What a socket of UDP is beside its state, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Datagrams {
    /// At every address: the kernel's socket is part of it.
    pub everywhere: bool,
    /// Connected, to where the kernel leads.
    pub by_kernel: bool,
    /// IP_MTU_DISCOVER or IPV6_MTU_DISCOVER says that nothing goes in fragments: the instance says what is too long.
    pub unfragmented: bool,
    /// Which control messages its programs have asked for; the library's to know.
    pub wants: u8,
    /// How many errors it was told of; the last one is the state's.
    pub errors: u16,
}

impl Datagrams {
    /// Of a row of UDP.
    const IS: u32 = 1;

    #[must_use]
    pub fn to_word(self) -> u32 {
        let flags = Datagrams::IS
            | u32::from(self.everywhere) << 1
            | u32::from(self.by_kernel) << 2
            | u32::from(self.unfragmented) << 3;
        flags | u32::from(self.wants) << 8 | u32::from(self.errors) << 16
    }

    /// `None`: of TCP.
    #[must_use]
    pub fn from_word(word: u32) -> Option<Datagrams> {
        (word & Datagrams::IS != 0).then_some(Datagrams {
            everywhere: word >> 1 & 1 != 0,
            by_kernel: word >> 2 & 1 != 0,
            unfragmented: word >> 3 & 1 != 0,
            wants: (word >> 8) as u8,
            errors: (word >> 16) as u16,
        })
    }
}

impl State {
    #[must_use]
    pub fn of(phase: Phase) -> State {
        State {
            phase,
            ended: false,
            errno: 0,
        }
    }

    #[must_use]
    pub fn to_word(self) -> u32 {
        self.phase as u32 | u32::from(self.ended) << 8 | u32::from(self.errno) << 16
    }

    #[must_use]
    pub fn from_word(word: u32) -> State {
        let phase = match word as u8 {
            1 => Phase::Bound,
            2 => Phase::Listening,
            3 => Phase::Connecting,
            4 => Phase::Connected,
            _ => Phase::Free,
        };
        State {
            phase,
            ended: word >> 8 & 1 != 0,
            errno: (word >> 16) as u16,
        }
    }
}

impl Row {
    #[must_use]
    pub fn new(generation: u32, state: State, ipv6: bool) -> Row {
        Row {
            generation,
            state: state.to_word(),
            local_len: 0,
            peer_len: 0,
            local: [0; ADDRESS],
            peer: [0; ADDRESS],
            ipv6: ipv6.into(),
            datagrams: 0,
        }
    }

    #[must_use]
    pub fn with(mut self, local: Option<SocketAddr>, peer: Option<SocketAddr>) -> Row {
        let put = |to: &mut [u8; ADDRESS], address: Option<SocketAddr>| {
            let bytes = address.map(address::to_bytes).unwrap_or_default();
            to[..bytes.len()].copy_from_slice(&bytes);
            bytes.len() as u32
        };
        self.local_len = put(&mut self.local, local);
        self.peer_len = put(&mut self.peer, peer);
        self
    }

    /// `struct sockaddr`'s bytes.
    #[must_use]
    pub fn address(&self, own: bool) -> &[u8] {
        let (bytes, len) = match own {
            true => (&self.local, self.local_len),
            false => (&self.peer, self.peer_len),
        };
        &bytes[..(len as usize).min(ADDRESS)]
    }

    /// From its words, as they lie in memory.
    #[must_use]
    pub fn from_words(words: [u32; ROW_BYTES / 4]) -> Row {
        let [generation, state, local_len, peer_len, rest @ ..] = words;
        let bytes = |at: usize| {
            let mut address = [0; ADDRESS];
            for (to, word) in address.chunks_exact_mut(4).zip(&rest[at..]) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
            address
        };
        Row {
            generation,
            state,
            local_len,
            peer_len,
            local: bytes(0),
            peer: bytes(ADDRESS / 4),
            ipv6: rest[2 * ADDRESS / 4],
            datagrams: rest[2 * ADDRESS / 4 + 1],
        }
    }

    #[must_use]
    pub fn to_words(&self) -> [u32; ROW_BYTES / 4] {
        let mut words = [0; ROW_BYTES / 4];
        let [generation, state, local_len, peer_len, rest @ ..] = &mut words;
        *generation = self.generation;
        *state = self.state;
        *local_len = self.local_len;
        *peer_len = self.peer_len;
        for (to, four) in rest
            .iter_mut()
            .zip(self.local.chunks_exact(4).chain(self.peer.chunks_exact(4)))
        {
            *to = u32::from_ne_bytes([four[0], four[1], four[2], four[3]]);
        }
        rest[2 * ADDRESS / 4] = self.ipv6;
        rest[2 * ADDRESS / 4 + 1] = self.datagrams;
        words
    }
}

/// The rows of all programs, or those of them whose sockets one of several engines has.
pub struct Table {
    region: Arc<MmapRegion>,
    file: Arc<OwnedFd>,
    /// The first of its own, and how many.
    from: u32,
    rows: u32,
    generations: Vec<u32>,
    /// Of each row: names of another instance are none here.
    first: u32,
    /// The one that is free longest is taken first: what a row says of a socket that is gone stays there long.
    free: VecDeque<u32>,
}

impl Table {
    /// For so many sockets at a time, in a new file in memory, and for each of so many engines an equal part of it.
    ///
    /// # Errors
    /// As memfd_create(2), ftruncate(2), mmap(2) and fcntl(2). EINVAL: a kernel before Linux 5.1.
    pub fn of_engines(sockets: u32, engines: u16) -> io::Result<Vec<Table>> {
        let engines = u32::from(engines.max(1));
        let rows = (sockets / engines + SPARE).min(ROWS_MAX / engines);
        let len = (rows * engines) as usize * ROW_BYTES;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("hopscope-sockets", flags)?;
        ftruncate(&file, len as u64)?;
        let of_region = FileOffset::new(File::from(file.try_clone()?), 0);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let region = MmapRegion::build(Some(of_region), len, access, libc::MAP_SHARED);
        let region = region.map_err(io::Error::other)?;
        // Shorter, it would end who reads it (SIGBUS). From here on nobody else writes it, root neither.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        let (region, file) = (Arc::new(region), Arc::new(file));
        let first = RandomState::new().build_hasher().finish() as u32 & GENERATIONS;
        let part = |engine| Table {
            region: region.clone(),
            file: file.clone(),
            from: engine * rows,
            rows,
            generations: Vec::new(),
            first,
            free: VecDeque::new(),
        };
        Ok((0..engines).map(part).collect())
    }

    /// Which engine's a row is.
    pub fn engine_of(&self, row: u32) -> usize {
        (row / self.rows) as usize
    }

    /// It gives the row away, and takes it back.
    pub fn has(&self, row: u32) -> bool {
        row.checked_sub(self.from).is_some_and(|at| at < self.rows)
    }

    /// For programs.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || (self.generations.len() as u32) < self.rows
    }

    /// A row of its own. `None`: all are in use.
    pub fn take(&mut self) -> Option<Name> {
        let used = self.generations.len() as u32;
        let row = match self.free.len() as u32 {
            few if few < SPARE && used < self.rows => {
                self.generations.push(self.first);
                self.from + used
            }
            _ => self.free.pop_front()?,
        };
        let generation = self.generations.get_mut((row - self.from) as usize)?;
        *generation = (*generation + 1) & GENERATIONS;
        Some(Name {
            row,
            generation: *generation,
        })
    }

    pub fn give_back(&mut self, name: Name) {
        self.free.push_back(name.row);
    }

    /// A socket's that this engine has, whichever gave the row. The generation first: who reads another word of the new socket finds that it is not the old one's any more.
    pub fn write(&self, row: u32, content: &Row) {
        for (at, word) in content.to_words().into_iter().enumerate() {
            self.store(row, at * size_of::<u32>(), word);
        }
    }

    pub fn set_state(&self, row: u32, state: State) {
        self.store(row, STATE_AT, state.to_word());
    }

    fn store(&self, row: u32, at: usize, word: u32) {
        let at = row as usize * ROW_BYTES + at;
        // Rows that it has given are within.
        let _ = self
            .region
            .as_volatile_slice()
            .store(word, at, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_state_is_a_word() {
        for phase in [
            Phase::Free,
            Phase::Bound,
            Phase::Listening,
            Phase::Connecting,
            Phase::Connected,
        ] {
            let state = State {
                phase,
                ended: true,
                errno: 104,
            };
            assert_eq!(State::from_word(state.to_word()), state);
        }
    }

    #[test]
    fn what_is_of_datagrams_is_a_word() {
        let of = Datagrams {
            everywhere: true,
            by_kernel: true,
            unfragmented: true,
            wants: 63,
            errors: 65_535,
        };
        assert_eq!(Datagrams::from_word(of.to_word()), Some(of));
        let none = Datagrams::default();
        assert_eq!(Datagrams::from_word(none.to_word()), Some(none));
        assert_eq!(Datagrams::from_word(0), None);
    }

    #[test]
    fn addresses_are_in_a_row() {
        let (v4, v6) = ("10.0.0.2:80", "[fd00::2]:443");
        let mut row = Row::new(3, State::of(Phase::Connected), true)
            .with(Some(v4.parse().unwrap()), Some(v6.parse().unwrap()));
        row.datagrams = 9;
        let parsed = |own| address::from_bytes(row.address(own)).unwrap().unwrap();
        assert_eq!(parsed(true).to_string(), v4);
        assert_eq!(parsed(false).to_string(), v6);
        assert_eq!(Row::from_words(row.to_words()), row);
    }

    fn alone(sockets: u32) -> Table {
        Table::of_engines(sockets, 1).unwrap().pop().unwrap()
    }

    #[test]
    fn each_engine_has_rows_of_its_own() {
        let mut all = Table::of_engines(8, 2).unwrap();
        let mut rows = Vec::new();
        for (engine, table) in all.iter_mut().enumerate() {
            let names: Vec<Name> = std::iter::from_fn(|| table.take()).collect();
            assert_eq!(names.len(), 4 + SPARE as usize);
            for name in names {
                assert!(table.has(name.row) && table.engine_of(name.row) == engine);
                rows.push(name.row);
            }
        }
        assert!(rows.iter().copied().eq(0..2 * (4 + SPARE)));
        assert!(!all[0].has(rows[rows.len() - 1]) && !all[1].has(0));
    }

    #[test]
    fn nobody_else_writes_it() {
        let mut table = alone(8);
        let name = table.take().unwrap();
        let row = Row::new(name.generation, State::of(Phase::Listening), false);
        table.write(name.row, &row);
        table.set_state(name.row, State::of(Phase::Connected));
        let own = format!("/proc/self/fd/{}", table.file().as_raw_fd());
        let read = std::fs::read(&own).unwrap();
        assert_eq!(read.len(), (8 + SPARE as usize) * ROW_BYTES);
        assert_eq!(read[..4], name.generation.to_ne_bytes());
        assert_eq!(read[STATE_AT], Phase::Connected as u8);
        let again = File::options().write(true).open(&own).unwrap();
        let denied = |done: io::Result<()>| done.unwrap_err().raw_os_error();
        assert_eq!(denied((&again).write_all(&[1])), Some(libc::EPERM));
        assert_eq!(denied(again.set_len(0)), Some(libc::EPERM));
        assert!(MmapRegion::<()>::from_file(FileOffset::new(again, 0), ROW_BYTES).is_err());
    }

    #[test]
    fn rows_come_to_an_end() {
        let mut table = alone(2);
        let all: Vec<Name> = std::iter::from_fn(|| table.take()).collect();
        assert_eq!(all.len(), 2 + SPARE as usize);
        assert!(!table.has_room());
        table.give_back(all[1]);
        let again = table.take().unwrap();
        assert_eq!(
            (again.row, again.generation),
            (all[1].row, all[1].generation + 1)
        );
    }
}
