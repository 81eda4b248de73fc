//! Compiled programs: opened, adapted, loaded; and their parts by name.
use crate::{BpfError, verifier_log};
use libbpf_rs::{
    MapCore, MapFlags, MapHandle, MapImpl, Object, ObjectBuilder, OpenObject, ProgramMut,
};

#[doc(hidden)]
#[repr(align(8))]
pub struct Aligned<const N: usize>(pub [u8; N]);

/// The object of `bpf/NAME.bpf.c` as the build script compiled it, aligned as ELF structures must be.
#[macro_export]
macro_rules! compiled {
    ($name:literal) => {{
        const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"));
        static OBJECT: $crate::object::Aligned<{ BYTES.len() }> = $crate::object::Aligned(
            *include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")),
        );
        &OBJECT.0
    }};
}

/// Opens the object under a name, has `adapt` size its maps and choose its programs, and loads it. `may_load` is asked
/// where the kernel returns EPERM: it does so without the capabilities, and for programs that the verifier refuses.
///
/// # Errors
/// What `adapt` returns; not allowed; the verifier refuses a program.
pub fn load(
    bytes: &[u8],
    name: &str,
    may_load: impl FnOnce() -> bool,
    adapt: impl FnOnce(&mut OpenObject) -> Result<(), BpfError>,
) -> Result<Object, BpfError> {
    verifier_log::capture();
    let mut open = ObjectBuilder::default()
        .name(name)
        .and_then(|builder| builder.open_memory(bytes))
        .map_err(BpfError::call("opening the programs"))?;
    adapt(&mut open)?;
    open.load().map_err(|error| {
        let is_denied = error.kind() == libbpf_rs::ErrorKind::PermissionDenied;
        if is_denied && !may_load() {
            BpfError::NotAllowed
        } else {
            let what = error.to_string();
            let log = verifier_log::take();
            BpfError::Refused { what, log }
        }
    })
}

/// CAP_BPF, or CAP_SYS_ADMIN, which stands for it; with CAP_NET_ADMIN (linux/capability.h).
pub fn has_capabilities() -> bool {
    const NET_ADMIN: u32 = 12;
    const SYS_ADMIN: u32 = 21;
    const BPF: u32 = 39;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective & (1 << capability) != 0;
    has(SYS_ADMIN) || (has(BPF) && has(NET_ADMIN))
}

/// Sets the constants of an object that is not loaded yet.
///
/// # Errors
/// The object has another number of bytes there.
pub fn set_rodata(open: &mut OpenObject, bytes: &[u8]) -> Result<(), BpfError> {
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().ends_with(".rodata") {
            map.set_initial_value(bytes)
                .map_err(BpfError::call("setting the programs' constants"))?;
        }
    }
    Ok(())
}

/// # Errors
/// The object has no such program.
pub fn program<'a>(object: &'a Object, name: &str) -> Result<ProgramMut<'a>, BpfError> {
    let found = object.progs_mut().find(|program| program.name() == name);
    found.ok_or_else(|| BpfError::missing("looking for a program", name))
}

/// # Errors
/// The object has no such map.
pub fn map<'a>(object: &'a Object, name: &str) -> Result<MapImpl<'a>, BpfError> {
    let found = object.maps().find(|map| map.name() == name);
    found.ok_or_else(|| BpfError::missing("looking for a map", name))
}

/// Global variables that programs and user space change: the map of `.bss`.
///
/// # Errors
/// The object has none.
pub fn variables(object: &Object) -> Result<MapImpl<'_>, BpfError> {
    let mut maps = object.maps();
    let found = maps.find(|map| map.name().to_string_lossy().ends_with(".bss"));
    found.ok_or_else(|| BpfError::missing("looking for a map", ".bss"))
}

/// A map that outlives its object.
///
/// # Errors
/// The object has no such map, or it cannot be opened once more.
pub fn map_handle(object: &Object, name: &str) -> Result<MapHandle, BpfError> {
    MapHandle::try_from(&map(object, name)?).map_err(BpfError::call("opening a map"))
}

/// Takes every entry out of a hash map that programs fill, as `of` understands its key and value: each is returned once.
pub fn take_entries<T>(map: &impl MapCore, of: impl Fn(&[u8], &[u8]) -> Option<T>) -> Vec<T> {
    let keys: Vec<_> = map.keys().collect();
    let take = |key: Vec<u8>| {
        let value = map.lookup(&key, MapFlags::ANY).ok()??;
        // Where this fails another reader has taken it as well.
        let _ = map.delete(&key);
        of(&key, &value)
    };
    keys.into_iter().filter_map(take).collect()
}
