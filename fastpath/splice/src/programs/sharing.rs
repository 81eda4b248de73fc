//! Programs of which two threads were in calls on one connection: `struct sharing` of `bpf/contract.h`.
use hopscope_bpf::object;
use libbpf_rs::MapCore;

/// A server's port in one network namespace, as the kernel programs know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listener {
    pub(super) netns_cookie: u64,
    pub port: u16,
}

impl Listener {
    /// `struct listener`
    pub(super) fn key(self) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.netns_cookie.to_ne_bytes());
        key[8..].copy_from_slice(&u64::from(self.port).to_ne_bytes());
        key
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharing {
    /// Of the program's file, as far as the kernel programs know it.
    pub name: String,
    pub pid: u32,
    /// Where the connection was accepted, if the program accepted it.
    pub listener: Option<Listener>,
}

fn sharing(key: &[u8], value: &[u8]) -> Option<Sharing> {
    let word = |at: usize| Some(u64::from_ne_bytes(value.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
    let name = key.split(|byte| *byte == 0).next()?;
    let listener = Listener {
        netns_cookie: word(8)?,
        port: u16::try_from(word(16)?).ok()?,
    };
    Some(Sharing {
        name: String::from_utf8_lossy(name).into_owned(),
        pid: half(0)?,
        listener: (half(4)? != 0).then_some(listener),
    })
}

/// Each is given out once for each connection.
pub(super) fn take(map: &impl MapCore) -> Vec<Sharing> {
    object::take_entries(map, sharing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_wrote() {
        let listener = Listener {
            netns_cookie: 7,
            port: 6379,
        };
        let mut value = Vec::new();
        value.extend(42u32.to_ne_bytes());
        value.extend(1u32.to_ne_bytes());
        value.extend(listener.key());
        let found = Sharing {
            name: "python3.11".into(),
            pid: 42,
            listener: Some(listener),
        };
        assert_eq!(sharing(b"python3.11\0\0\0\0\0\0", &value), Some(found));
        value[4] = 0;
        let found = sharing(b"x\0", &value).expect("whole");
        assert_eq!(found.listener, None);
        assert_eq!(sharing(b"x\0", &value[..23]), None);
    }
}
