//! What a program is told of its sockets without asking: a file in memory with a row for each, which the instance writes and never
//! reads. A program that changes it deceives itself.
use super::wire::Name;
use hopscope_stack_abi::address;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use std::collections::VecDeque;
use std::fs::{File, Permissions};
use std::io;
use std::mem::offset_of;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, PermissionsExt};

/// Rows of a program.
pub const ROWS: u32 = 32_768;
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
    /// IP_MTU_DISCOVER says that nothing goes in fragments.
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
    pub fn to_bytes(&self) -> [u8; ROW_BYTES] {
        let mut bytes = [0; ROW_BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(offset_of!(Row, generation), &self.generation.to_ne_bytes());
        put(offset_of!(Row, state), &self.state.to_ne_bytes());
        put(offset_of!(Row, local_len), &self.local_len.to_ne_bytes());
        put(offset_of!(Row, peer_len), &self.peer_len.to_ne_bytes());
        put(offset_of!(Row, local), &self.local);
        put(offset_of!(Row, peer), &self.peer);
        put(offset_of!(Row, ipv6), &self.ipv6.to_ne_bytes());
        put(offset_of!(Row, datagrams), &self.datagrams.to_ne_bytes());
        bytes
    }
}

/// The rows of one program.
pub struct Table {
    file: File,
    /// The same, to be read alone.
    reader: File,
    generations: Vec<u32>,
    /// The one that is free longest is taken first: what a row says of a socket that is gone stays there long.
    free: VecDeque<u32>,
}

impl Table {
    /// In a new file in memory.
    ///
    /// # Errors
    /// As ftruncate(2), open(2) and fchmod(2); `file` takes no seals.
    pub fn new(file: OwnedFd) -> io::Result<Table> {
        let file = File::from(file);
        file.set_len(u64::from(ROWS) * ROW_BYTES as u64)?;
        // Shorter, it would end who reads it (SIGBUS).
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
        let reader = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        // Processes of a program may be of several users: who has the reader cannot open it otherwise.
        file.set_permissions(Permissions::from_mode(0o000))?;
        Ok(Table {
            file,
            reader,
            generations: Vec::new(),
            free: VecDeque::new(),
        })
    }

    /// For the program.
    pub fn reader(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || (self.generations.len() as u32) < ROWS
    }

    /// A row of its own. `None`: all are in use.
    pub fn take(&mut self) -> Option<Name> {
        // Some are never the next one's at once.
        const SPARE: usize = 256;
        let used = self.generations.len() as u32;
        let row = match self.free.len() {
            few if few < SPARE && used < ROWS => {
                self.generations.push(0);
                used
            }
            _ => self.free.pop_front()?,
        };
        let generation = self.generations.get_mut(row as usize)?;
        *generation = (*generation + 1) & GENERATIONS;
        Some(Name {
            row,
            generation: *generation,
        })
    }

    pub fn give_back(&mut self, name: Name) {
        self.free.push_back(name.row);
    }

    /// # Errors
    /// As pwrite(2).
    pub fn write(&self, row: u32, content: &Row) -> io::Result<()> {
        self.file
            .write_all_at(&content.to_bytes(), u64::from(row) * ROW_BYTES as u64)
    }

    /// # Errors
    /// As pwrite(2).
    pub fn set_state(&self, row: u32, state: State) -> io::Result<()> {
        let at = u64::from(row) * ROW_BYTES as u64 + STATE_AT as u64;
        self.file.write_all_at(&state.to_word().to_ne_bytes(), at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let bytes = row.to_bytes();
        let mut words = [0; ROW_BYTES / 4];
        for (word, four) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_ne_bytes(four.try_into().unwrap());
        }
        assert_eq!(Row::from_words(words), row);
    }
}
