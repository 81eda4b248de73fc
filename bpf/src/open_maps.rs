//! BPF maps that processes of this machine hold open: programs that run for another process are found by them, so that
//! nothing stays in a file system when that one is killed.
use libbpf_rs::MapHandle;
use std::fs;
use std::path::Path;

/// Every process with open maps that may be looked at, in order of number, as `of` understands its maps.
pub fn by_process<T>(of: impl Fn(u32, Vec<MapHandle>) -> Option<T>) -> Vec<T> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = pids.collect();
    pids.sort_unstable();
    let each = |pid: u32| of(pid, maps(pid)?);
    pids.into_iter().filter_map(each).collect()
}

fn maps(pid: u32) -> Option<Vec<MapHandle>> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let maps = descriptors.filter_map(|fd| {
        let target = fs::read_link(fd.path()).ok()?;
        let is_map = target == Path::new("anon_inode:bpf-map");
        is_map.then(|| map(pid, &fd.file_name().to_string_lossy()))?
    });
    Some(maps.collect::<Vec<_>>()).filter(|maps| !maps.is_empty())
}

/// proc(5): the descriptor's information has the map's number.
fn map(pid: u32, fd: &str) -> Option<MapHandle> {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("map_id:"))?;
    MapHandle::from_map_id(id.trim().parse().ok()?).ok()
}
