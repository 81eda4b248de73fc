//! Programs of others at a control group: what they do to packets and connections they would not do
//! to bytes that never become packets.
use super::SpliceError;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Programs of one kind that are in force at a group, its ancestors' included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    pub what: &'static str,
    pub programs: Vec<u32>,
}

const KINDS: [(&str, u32); 3] = [
    ("packets that come in", libbpf_sys::BPF_CGROUP_INET_INGRESS),
    ("packets that go out", libbpf_sys::BPF_CGROUP_INET_EGRESS),
    ("events of TCP sockets", libbpf_sys::BPF_CGROUP_SOCK_OPS),
];
const MOST: usize = 64;

/// # Errors
/// The group cannot be opened, or the kernel does not say.
pub fn policies(cgroup: &Path) -> Result<Vec<Policy>, SpliceError> {
    let group = File::open(cgroup).map_err(|source| SpliceError::Cgroup {
        path: cgroup.to_owned(),
        source,
    })?;
    let mut found = Vec::new();
    for (what, kind) in KINDS {
        let programs = query(&group, kind)?;
        if !programs.is_empty() {
            found.push(Policy { what, programs });
        }
    }
    Ok(found)
}

#[allow(unsafe_code)]
fn query(group: &File, kind: u32) -> Result<Vec<u32>, SpliceError> {
    let mut ids = [0u32; MOST];
    let mut count = MOST as u32;
    let mut flags = 0u32;
    // SAFETY: `ids` has room for `count` numbers, and the kernel writes no more than that many; the
    // other pointers are to live variables of the types that bpf_prog_query takes.
    let error = unsafe {
        libbpf_sys::bpf_prog_query(
            group.as_raw_fd(),
            kind,
            libbpf_sys::BPF_F_QUERY_EFFECTIVE,
            &raw mut flags,
            ids.as_mut_ptr(),
            &raw mut count,
        )
    };
    if error != 0 {
        let why = std::io::Error::from_raw_os_error(-error);
        return Err(SpliceError::call(
            "reading which programs a control group has",
            why,
        ));
    }
    Ok(ids[..(count as usize).min(MOST)].to_vec())
}
