//! What the program is told and tells: `bpf/bypass.h`.
use hopscope_stack_abi::mark;

/// The preloaded library's file: `LIBRARY`.
pub const LIBRARY: &str = "libhopscope_preload.so";
/// Of `struct bypass_config`.
const CONFIG_BYTES: usize = 32;
/// Of `struct bypass_event`.
const EVENT_BYTES: usize = 48 + COMM_BYTES + NAME_BYTES;
const COMM_BYTES: usize = 16;
const NAME_BYTES: usize = 64;

/// `struct bypass_config`
pub(crate) struct Config {
    pub(crate) namespace_device: u64,
    pub(crate) namespace_inode: u64,
    pub(crate) root: u32,
    pub(crate) instance: u32,
}

impl Config {
    pub(crate) fn to_bytes(&self) -> [u8; CONFIG_BYTES] {
        let mut bytes = [0; CONFIG_BYTES];
        bytes[..8].copy_from_slice(&self.namespace_device.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.namespace_inode.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.root.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.instance.to_ne_bytes());
        bytes[24..32].copy_from_slice(&mark::WORD.to_ne_bytes());
        bytes
    }
}

/// `enum bypass_family`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Other,
    Inet,
    Inet6,
    Stack,
}

/// `struct bypass_event`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Call(Call),
    /// The process of this key has ended.
    End {
        process: Process,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    /// In its own pid namespace.
    pub(crate) number: u32,
    /// What rows of `calls` begin with.
    pub(crate) key: u32,
    pub(crate) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) process: Process,
    pub(crate) number: u32,
    pub(crate) fd: Option<u32>,
    pub(crate) family: Family,
    pub(crate) at: u64,
    /// None: it could not be told. An empty name: no file is mapped there.
    pub(crate) file: Option<(String, u64)>,
}

impl Event {
    pub(crate) fn read(bytes: &[u8]) -> Option<Event> {
        let bytes: &[u8; EVENT_BYTES] = bytes.get(..EVENT_BYTES)?.try_into().ok()?;
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        let process = Process {
            number: word(4),
            key: word(8),
            name: text(&bytes[48..48 + COMM_BYTES]),
        };
        match word(0) {
            1 => Some(Event::Call(Call {
                process,
                number: word(12),
                fd: i32::from_ne_bytes(word(16).to_ne_bytes()).try_into().ok(),
                family: match word(20) {
                    2 => Family::Inet,
                    10 => Family::Inet6,
                    1000 => Family::Stack,
                    _ => Family::Other,
                },
                at: long(24),
                file: (word(40) == 0).then(|| (text(&bytes[48 + COMM_BYTES..]), long(32))),
            })),
            2 => Some(Event::End { process }),
            _ => None,
        }
    }
}

/// Up to the first 0.
fn text(bytes: &[u8]) -> String {
    let len = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..len])
        .escape_debug()
        .to_string()
}

/// A row of `calls`: `struct bypass_key` and `struct bypass_calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) at: u64,
    pub(crate) process: u32,
    pub(crate) number: u32,
    pub(crate) calls: u64,
    pub(crate) is_own: bool,
}

impl Row {
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<Row> {
        let (key, value): (&[u8; 16], &[u8; 16]) = (key.try_into().ok()?, value.try_into().ok()?);
        let long = |bytes: &[u8; 16], at: usize| {
            u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]))
        };
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| key[at + i]));
        Some(Row {
            at: long(key, 0),
            process: word(8),
            number: word(12),
            calls: long(value, 0),
            is_own: long(value, 8) != 0,
        })
    }
}

/// `struct bypass_counters`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) running: u64,
    pub(crate) processes: u64,
    pub(crate) unwatched: u64,
    pub(crate) unnamed: u64,
    pub(crate) untold: u64,
}

impl Counters {
    pub(crate) fn read(bytes: &[u8]) -> Option<Counters> {
        let bytes: &[u8; 40] = bytes.get(..40)?.try_into().ok()?;
        let [running, processes, unwatched, unnamed, untold] =
            std::array::from_fn(|n| u64::from_ne_bytes(std::array::from_fn(|i| bytes[n * 8 + i])));
        Some(Counters {
            running,
            processes,
            unwatched,
            unnamed,
            untold,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LIBRARY;

    #[test]
    fn the_kernels_side_has_the_same_name() {
        let line = format!("#define LIBRARY \"{LIBRARY}\"\n");
        assert!(include_str!("../bpf/bypass.h").contains(&line));
    }
}
