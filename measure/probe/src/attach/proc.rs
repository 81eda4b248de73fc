//! What `/proc` says of a process and its threads.
use std::fs;
use std::io;

/// Thread ids, ascending.
pub fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let mut tids: Vec<i32> = fs::read_dir(format!("/proc/{pid}/task"))?
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect();
    tids.sort_unstable();
    Ok(tids)
}

/// `/proc/PID/task/TID/status`, parsed on demand.
pub struct Status(String);

impl Status {
    pub fn read(pid: i32, tid: i32) -> io::Result<Status> {
        fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).map(Status)
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.0
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    }

    pub fn state(&self) -> char {
        self.field("State")
            .and_then(|s| s.chars().next())
            .unwrap_or('?')
    }
}

pub fn state(pid: i32, tid: i32) -> char {
    Status::read(pid, tid).map_or('X', |s| s.state())
}
