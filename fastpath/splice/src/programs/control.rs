//! `struct control` of `bpf/contract.h`: read and written while programs run.
use super::SpliceError;
use libbpf_rs::{MapCore, MapFlags};

pub(super) const BYTES: usize = PORTS + 2 * PORTS_MAX;
const PORTS: usize = 80;
pub(super) const PORTS_MAX: usize = 64;
pub(super) const STOP: usize = 0;
const KEY: [u8; 4] = [0; 4];

/// What is fixed for as long as programs run.
pub(super) struct Control {
    pub guard: bool,
    pub pid: u32,
    pub limit_bytes: u64,
    pub ends_max: i64,
    pub ends_now: i64,
    pub verify: bool,
    pub change_each: u32,
    pub lose_each: u32,
    pub blocking: bool,
    pub across_users: bool,
    pub pair: bool,
    pub resets: bool,
    pub in_flight: bool,
    pub linger_ns: u64,
    pub ports: Vec<u16>,
    pub is_stopped: bool,
}

impl Control {
    pub(super) fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&u32::from(self.is_stopped).to_ne_bytes());
        put(&u32::from(self.guard).to_ne_bytes());
        put(&(self.ports.len() as u32).to_ne_bytes());
        put(&self.pid.to_ne_bytes());
        put(&self.limit_bytes.to_ne_bytes());
        put(&self.ends_max.to_ne_bytes());
        put(&self.ends_now.to_ne_bytes());
        put(&u32::from(self.verify).to_ne_bytes());
        put(&self.change_each.to_ne_bytes());
        put(&self.lose_each.to_ne_bytes());
        put(&u32::from(self.blocking).to_ne_bytes());
        put(&u32::from(self.across_users).to_ne_bytes());
        put(&u32::from(self.pair).to_ne_bytes());
        put(&u32::from(self.resets).to_ne_bytes());
        put(&u32::from(self.in_flight).to_ne_bytes());
        put(&self.linger_ns.to_ne_bytes());
        for port in &self.ports {
            put(&port.to_ne_bytes());
        }
        bytes
    }

    fn of_bytes(bytes: &[u8; BYTES]) -> Control {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        let half = |at: usize| (word(at) & u64::from(u32::MAX)) as u32;
        let ports = half(8) as usize;
        Control {
            is_stopped: half(STOP) != 0,
            guard: half(4) != 0,
            pid: half(12),
            limit_bytes: word(16),
            ends_max: word(24).cast_signed(),
            ends_now: word(32).cast_signed(),
            verify: half(40) != 0,
            change_each: half(44),
            lose_each: half(48),
            blocking: half(52) != 0,
            across_users: half(56) != 0,
            pair: half(60) != 0,
            resets: half(64) != 0,
            in_flight: half(68) != 0,
            linger_ns: word(72),
            ports: bytes[PORTS..]
                .chunks_exact(2)
                .take(ports)
                .map(|pair| u16::from_ne_bytes([pair[0], pair[1]]))
                .collect(),
        }
    }
}

pub(super) fn read(map: &impl MapCore) -> Result<Control, SpliceError> {
    Ok(Control::of_bytes(&bytes(map)?))
}

fn bytes(map: &impl MapCore) -> Result<[u8; BYTES], SpliceError> {
    let what = "reading what is set";
    let value = map
        .lookup(&KEY, MapFlags::ANY)
        .map_err(SpliceError::bpf(what))?;
    let value = value.and_then(|value| value.get(..BYTES)?.try_into().ok());
    value.ok_or(SpliceError::missing(what, "map of that size"))
}

pub(super) fn write(map: &impl MapCore, control: &Control) -> Result<(), SpliceError> {
    map.update(&KEY, &control.to_bytes(), MapFlags::ANY)
        .map_err(SpliceError::bpf("setting what is asked"))
}

/// From here on every message takes TCP. The kernel counts sockets in the same value; it joins none
/// any more, so a count that is overwritten is at most shown wrong.
pub(super) fn stop(map: &impl MapCore) -> Result<(), SpliceError> {
    let mut value = bytes(map)?;
    value[STOP..STOP + 4].copy_from_slice(&1u32.to_ne_bytes());
    map.update(&KEY, &value, MapFlags::ANY)
        .map_err(SpliceError::bpf("stopping"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_survives_its_bytes() {
        let control = Control {
            guard: true,
            pid: 7,
            limit_bytes: 1 << 20,
            ends_max: 4096,
            ends_now: -1,
            verify: true,
            change_each: 3,
            lose_each: 4,
            blocking: true,
            across_users: true,
            pair: true,
            resets: true,
            in_flight: true,
            linger_ns: 5,
            ports: vec![6379, 5432],
            is_stopped: false,
        };
        let again = Control::of_bytes(&control.to_bytes());
        assert_eq!(again.ports, [6379, 5432]);
        assert_eq!(
            (again.pid, again.limit_bytes, again.ends_max, again.ends_now),
            (7, 1 << 20, 4096, -1)
        );
        assert!(again.guard && !again.is_stopped && again.verify);
        assert!(again.blocking && again.across_users && again.pair);
        assert!(again.resets && again.in_flight);
        let spoil = (again.change_each, again.lose_each, again.linger_ns);
        assert_eq!(spoil, (3, 4, 5));
    }
}
