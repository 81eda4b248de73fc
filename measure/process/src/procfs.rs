//! What `/proc` says of a process and its threads.
use super::mark;
use std::fs;
use std::io;

/// A file of `/proc` as text. Names of threads and files in it may be any bytes: a process is not to
/// be out of reach by what it calls itself.
pub fn text(path: &str) -> io::Result<String> {
    Ok(match String::from_utf8(fs::read(path)?) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    })
}

/// Whose entry in `/proc` shows a process's memory: its main thread's, or another one's when that has ended and the
/// others run on.
pub fn memory_holder(pid: i32) -> i32 {
    let has_ended = |tid: &i32| matches!(state(pid, *tid), 'Z' | 'X');
    match has_ended(&pid) {
        false => pid,
        true => {
            let others = threads(pid).unwrap_or_default();
            others
                .into_iter()
                .find(|tid| !has_ended(tid))
                .unwrap_or(pid)
        }
    }
}

/// Thread ids, ascending.
pub fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let mut tids: Vec<i32> = fs::read_dir(format!("/proc/{pid}/task"))?
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect();
    tids.sort_unstable();
    Ok(tids)
}

/// How many threads a process has, with those that are ending; `None`: it is gone.
pub fn thread_count(pid: i32) -> Option<usize> {
    let status = text(&format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    line?.trim().parse().ok()
}

/// `/proc/PID/task/TID/status`, parsed on demand.
pub struct Status(String);

impl Status {
    pub fn read(pid: i32, tid: i32) -> io::Result<Status> {
        text(&format!("/proc/{pid}/task/{tid}/status")).map(Status)
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

/// The processor that a thread runs on; `None` when it does not run.
pub fn running_on(pid: i32, tid: i32) -> Option<usize> {
    let stat = text(&format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    // proc_pid_stat(5): field 3 is the state, field 39 the processor.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let processor = fields.nth(35)?.parse().ok()?;
    (state == "R").then_some(processor)
}

/// The user whose files a process makes now, as this process sees users (proc_pid_status(5)); `None`
/// when it is gone.
pub fn uid(pid: i32) -> Option<u32> {
    let status = Status::read(pid, pid).ok()?;
    status.field("Uid")?.split_whitespace().nth(3)?.parse().ok()
}

/// Field 22 of /proc/PID/stat: start time in clock ticks after boot; `None` for a zombie.
pub fn start_time(pid: i32) -> Option<u64> {
    let stat = text(&format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The number of a process where it lives: the last of those in its nested pid namespaces.
pub fn pid_inside(pid: i32) -> io::Result<i32> {
    tid_inside(pid, pid)
}

/// The same for one of its threads.
pub fn tid_inside(pid: i32, tid: i32) -> io::Result<i32> {
    let status = Status::read(pid, tid)?;
    let last = status
        .field("NSpid")
        .and_then(|l| l.split_whitespace().last());
    Ok(last.and_then(|n| n.parse().ok()).unwrap_or(tid))
}

/// Whether `pid` is another hopscope, by its name, its program or its mark; also when its program cannot be read.
pub fn is_hopscope(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let exe = |pid: &str| {
        let m = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        Some((m.dev(), m.ino()))
    };
    let theirs = exe(&pid.to_string());
    let named =
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim_end() == "hopscope");
    named || theirs.is_none() || theirs == exe("self") || mark::is_held_by(pid)
}
