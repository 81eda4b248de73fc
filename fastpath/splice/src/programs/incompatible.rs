//! What programs did with their sockets that redirected bytes do not keep to: `struct incompatible_use` of `bpf/contract.h`.
use hopscope_bpf::object;
use libbpf_rs::MapCore;
use std::fmt;

/// `NAME_MAX` of `bpf/contract.h`
const NAME_BYTES: usize = 16;
const LEVEL_CALL: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Incompatibility {
    /// setsockopt(2): level and option.
    Option(u32, u32),
    /// `enum incompatible_call`
    Call(u32),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncompatibleUse {
    /// Of the program's file, as far as the kernel programs know it.
    pub name: String,
    pub pid: u32,
    pub what: Incompatibility,
}

/// include/uapi/asm-generic/socket.h and include/uapi/linux/tcp.h
fn option(level: u32, option: u32) -> Option<&'static str> {
    Some(match (level, option) {
        (1, 26) => "SO_ATTACH_FILTER",
        (1, 29 | 63) => "SO_TIMESTAMP",
        (1, 35 | 64) => "SO_TIMESTAMPNS",
        (1, 37 | 65) => "SO_TIMESTAMPING",
        (1, 42) => "SO_PEEK_OFF",
        (1, 47) => "SO_MAX_PACING_RATE",
        (1, 50) => "SO_ATTACH_BPF",
        (1, 60) => "SO_ZEROCOPY",
        (6, 3) => "TCP_CORK",
        (6, 14) => "TCP_MD5SIG",
        (6, 19) => "TCP_REPAIR",
        (6, 31) => "TCP_ULP",
        (6, 35) => "TCP_ZEROCOPY_RECEIVE",
        _ => return None,
    })
}

/// `CALL_PEEK`
const PEEK: u32 = 3;

impl Incompatibility {
    /// Of its program's connections only those stay redirected that are.
    pub fn is_peek(self) -> bool {
        self == Incompatibility::Call(PEEK)
    }
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Incompatibility::Option(level, number) => match option(level, number) {
                Some(name) => write!(f, "sets {name}"),
                None => write!(f, "sets option {number} of level {level}"),
            },
            Incompatibility::Call(call) => f.write_str(match call {
                0 => "uses splice(2), or sendfile(2) from a socket",
                2 => "has an io_uring",
                PEEK => "receives with MSG_PEEK",
                4 => "sends with MSG_OOB or MSG_FASTOPEN",
                _ => "receives with MSG_OOB or MSG_TRUNC",
            }),
        }
    }
}

fn of(key: &[u8], value: &[u8]) -> Option<IncompatibleUse> {
    let half =
        |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let name = key.get(..NAME_BYTES)?.split(|byte| *byte == 0).next()?;
    let what = half(key, NAME_BYTES + 4)?;
    Some(IncompatibleUse {
        name: String::from_utf8_lossy(name).into_owned(),
        pid: half(value, 0)?,
        what: match half(key, NAME_BYTES)? {
            LEVEL_CALL => Incompatibility::Call(what),
            level => Incompatibility::Option(level, what),
        },
    })
}

/// Each is given out once for each connection.
pub(super) fn take(map: &impl MapCore) -> Vec<IncompatibleUse> {
    object::take_entries(map, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_wrote() {
        let mut key = b"python3.11\0\0\0\0\0\0".to_vec();
        key.extend(1u32.to_ne_bytes());
        key.extend(42u32.to_ne_bytes());
        let found = of(&key, &7u32.to_ne_bytes()).expect("whole");
        assert_eq!((found.name.as_str(), found.pid), ("python3.11", 7));
        assert_eq!(found.what.to_string(), "sets SO_PEEK_OFF");
        key[16..20].copy_from_slice(&LEVEL_CALL.to_ne_bytes());
        let found = of(&key, &7u32.to_ne_bytes()).expect("whole");
        assert_eq!(found.what, Incompatibility::Call(42));
        assert_eq!(of(&key[..20], &[0; 4]), None);
    }
}
