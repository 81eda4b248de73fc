//! The kernel's epoll sets that a descriptor is in, by /proc/PID/fdinfo (proc(5)). None where there is no /proc.
use crate::kernel;
use crate::say::say;
use nix::libc;
use rustix::io::Errno;

/// Of a descriptor, in a set of this process.
#[derive(Debug, PartialEq, Eq)]
pub struct Membership {
    epoll: i32,
    fd: i32,
    events: u32,
    data: u64,
}

pub fn memberships(fd: i32) -> Vec<Membership> {
    let sets = descriptors().into_iter().filter(|fd| is_epoll(*fd));
    let of = sets.filter_map(|epoll| {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{epoll}")).ok()?;
        let mut lines = info.lines();
        lines.find_map(|line| parse(line, epoll, fd))
    });
    of.collect()
}

/// `tfd: 5 events: 19 data: 7f00 …`, where all but the first number are hexadecimal (ep_show_fdinfo, fs/eventpoll.c).
fn parse(line: &str, epoll: i32, of: i32) -> Option<Membership> {
    let mut words = line.split_whitespace();
    let mut value = |name: &str| {
        let found = words.next() == Some(name);
        words.next().filter(|_| found)
    };
    let fd: i32 = value("tfd:")?.parse().ok()?;
    let events = u32::from_str_radix(value("events:")?, 16).ok()?;
    let data = u64::from_str_radix(value("data:")?, 16).ok()?;
    (fd == of).then_some(Membership {
        epoll,
        fd,
        events,
        data,
    })
}

/// Other processes may have the file, so that the sets would go on to report it.
pub fn leave(sets: &[Membership]) {
    for set in sets {
        let _ = kernel::epoll_ctl(set.epoll, libc::EPOLL_CTL_DEL, set.fd, 0, 0);
    }
}

/// Where it is another file by now. What cannot be is said: the program hears nothing more of it there.
pub fn join(sets: &[Membership]) {
    for set in sets {
        let add = libc::EPOLL_CTL_ADD;
        if let Err(error) = kernel::epoll_ctl(set.epoll, add, set.fd, set.events, set.data) {
            let (fd, epoll) = (set.fd, set.epoll);
            let of = Errno::from_raw_os_error(error);
            say(&format!(
                "descriptor {fd} is not in the epoll set {epoll} any more: {of}"
            ));
        }
    }
}

/// This process's.
pub fn descriptors() -> Vec<i32> {
    let Ok(folder) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let names = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.collect()
}

fn is_epoll(fd: i32) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}"));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventpoll]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_fdinfo() {
        let line = "tfd:        7 events: 80000019 data:     7fff00000007  pos:0 ino:64 sdev:7";
        let found = parse(line, 3, 7);
        let expected = Membership {
            epoll: 3,
            fd: 7,
            events: 0x8000_0019,
            data: 0x7fff_0000_0007,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(parse(line, 3, 8), None);
        assert_eq!(parse("pos:\t0", 3, 7), None);
    }
}
