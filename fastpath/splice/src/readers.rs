//! Programs that rely on FIONREAD for how many bytes can be read. Where
//! the kernel answers 0 at joined sockets, such a program waits for ever.
use crate::interpreters;
use nix::libc;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// They ask from libraries that they load by themselves, or were seen to hang.
pub const KNOWN: &[&str] = &["nginx", "java", "dotnet"];

/// Libraries of theirs that ask: of the JVM and of .NET. Others have the constant for other files'
/// sake, libsystemd for one.
const LIBRARIES: &[&str] = &["libnet.so", "libnio.so", "libSystem.Native.so"];

/// Shells, that ask of terminals. What they start is judged by itself.
const HARMLESS: &[&str] = &["bash", "dash", "sh", "zsh", "ksh", "fish", "busybox"];

/// `mov $FIONREAD, %esi`: the second argument of ioctl(2) as compilers put it there (System V ABI,
/// x86-64 supplement; asm-generic/ioctls.h).
const ASKS: [u8; 5] = [0xbe, 0x1b, 0x54, 0x00, 0x00];

/// Why a program takes no part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Of the program's file: what the kernel knows it by.
    pub name: String,
    pub why: String,
    /// Whether it uses FIONREAD depends on what it executes.
    pub depends_on_script: bool,
}

impl Reason {
    fn asks(name: String, why: String) -> Reason {
        Reason {
            name,
            why,
            depends_on_script: false,
        }
    }

    fn may_ask(name: String, why: String) -> Reason {
        Reason {
            name,
            why,
            depends_on_script: true,
        }
    }
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // What was replaced since it was started is shown so.
    name.trim_end_matches(" (deleted)").to_owned()
}

fn contains(bytes: &[u8]) -> bool {
    bytes.windows(ASKS.len()).any(|window| window == ASKS)
}

fn file_asks(path: &Path) -> io::Result<bool> {
    Ok(!is_this_program(path)? && contains(&read_regular(path)?))
}

/// hopscope asks only where it tries what the kernel answers, whatever its file is called.
fn is_this_program(path: &Path) -> io::Result<bool> {
    let identity = |path: &Path| fs::metadata(path).map(|m| (m.dev(), m.ino()));
    Ok(identity(path)? == identity(Path::new("/proc/self/exe"))?)
}

/// Larger programs are not looked into.
const PROGRAM_MAX_BYTES: u64 = 1 << 30;

/// What a process runs lies where the process says. `O_PATH` opens nothing, so that neither a device
/// is opened nor a pipe waited for; then it is the same file that is read.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let open = |path: &Path, flags| {
        let mut options = fs::OpenOptions::new();
        options.read(true).custom_flags(flags).open(path)
    };
    let named = open(path, libc::O_PATH)?;
    let metadata = named.metadata()?;
    if !metadata.is_file() || metadata.len() > PROGRAM_MAX_BYTES {
        let why = format!("{}: not a program's file", path.display());
        return Err(io::Error::other(why));
    }
    let again = format!("/proc/self/fd/{}", named.as_raw_fd());
    let file = open(Path::new(&again), libc::O_NONBLOCK | libc::O_NOCTTY)?;
    let mut bytes = Vec::new();
    file.take(metadata.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// # Errors
/// The file cannot be read.
pub fn judge_file(path: &Path) -> io::Result<Option<Reason>> {
    let name = name(path);
    if KNOWN.contains(&name.as_str()) {
        let why = "is known to ask FIONREAD".to_owned();
        return Ok(Some(Reason::asks(name, why)));
    }
    if interpreters::is_interpreter(&name) {
        return Ok(Some(Reason::may_ask(name, MAY_ASK.to_owned())));
    }
    if HARMLESS.contains(&name.as_str()) {
        return Ok(None);
    }
    let why = format!("{} asks FIONREAD", path.display());
    Ok(file_asks(path)?.then(|| Reason::asks(name, why)))
}

const MAY_ASK: &str = "runs scripts, which may ask FIONREAD";

/// What was found out about files. A file is known by its device and inode, and by when it was changed: another one may
/// have its path, in a container or later.
#[derive(Debug, Default)]
pub struct Judge {
    asks: HashMap<[u64; 5], bool>,
}

impl Judge {
    /// A process: its program, and what it has loaded.
    ///
    /// # Errors
    /// It is gone, or may not be looked at.
    pub fn process(&mut self, pid: u32) -> io::Result<Option<Reason>> {
        let exe = PathBuf::from(format!("/proc/{pid}/exe"));
        let program = fs::read_link(&exe)?;
        let own = name(&program);
        let asks = |path: &Path| {
            let why = format!("{} asks FIONREAD", path.display());
            Reason::asks(own.clone(), why)
        };
        if KNOWN.contains(&own.as_str()) || interpreters::is_interpreter(&own) {
            return judge_file(&program);
        }
        if !HARMLESS.contains(&own.as_str()) && self.asks(&exe)? {
            return Ok(Some(asks(&program)));
        }
        // Names of files may be any bytes.
        let maps = fs::read(format!("/proc/{pid}/maps"))?;
        let maps = String::from_utf8_lossy(&maps);
        let mut embedded = None;
        for line in maps.lines() {
            // proc(5): address, permissions, offset, device, inode, path.
            let mut words = line.split_ascii_whitespace();
            let (Some(range), Some(permissions)) = (words.next(), words.next()) else {
                continue;
            };
            let Some(path) = words.nth(3).map(PathBuf::from) else {
                continue;
            };
            let library = name(&path);
            if !permissions.contains('x') {
                continue;
            }
            if LIBRARIES.contains(&library.as_str()) && self.asks(&mapped_file(pid, range))? {
                return Ok(Some(asks(&path)));
            }
            if interpreters::is_library(&library) {
                let why = format!("{} in it {MAY_ASK}", path.display());
                embedded = Some(Reason::may_ask(own.clone(), why));
            }
        }
        Ok(embedded)
    }

    /// `path` may be a link of /proc: it leads to the very file, whatever its name is now.
    fn asks(&mut self, path: &Path) -> io::Result<bool> {
        let file = fs::metadata(path)?;
        let changed = [file.mtime(), file.mtime_nsec()].map(i64::cast_unsigned);
        let key = [file.dev(), file.ino(), file.len(), changed[0], changed[1]];
        if let Some(asks) = self.asks.get(&key) {
            return Ok(*asks);
        }
        let asks = file_asks(path)?;
        self.asks.insert(key, asks);
        Ok(asks)
    }
}

/// proc(5): /proc/PID/map_files has a link for each range, without zeros in front.
fn mapped_file(pid: u32, range: &str) -> PathBuf {
    let ends: Vec<&str> = range
        .split('-')
        .map(|end| end.trim_start_matches('0'))
        .collect();
    PathBuf::from(format!("/proc/{pid}/map_files/{}", ends.join("-")))
}

/// What a process runs, in short: it changes with each library that is loaded.
///
/// # Errors
/// It is gone, or may not be looked at.
pub fn stamp(pid: u32) -> io::Result<String> {
    let file = fs::metadata(format!("/proc/{pid}/exe"))?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let code = status
        .lines()
        .filter(|line| line.starts_with("VmExe:") || line.starts_with("VmLib:"));
    let code: Vec<&str> = code.collect();
    Ok(format!("{} {} {}", file.dev(), file.ino(), code.join(" ")))
}

/// Inodes of a process's sockets, as its descriptors show them.
pub fn sockets(pid: u32) -> Vec<u64> {
    let fds = fs::read_dir(format!("/proc/{pid}/fd"));
    let links = fds.into_iter().flatten().flatten();
    links
        .filter_map(|fd| {
            let link = fs::read_link(fd.path()).ok()?;
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            inode.parse().ok()
        })
        .collect()
}

/// The file that a command's first word runs, the interpreter of a script included.
pub fn program_of(word: &Path) -> Option<PathBuf> {
    let found = if word.components().count() > 1 {
        word.to_owned()
    } else {
        std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|dir| dir.join(word))
            .find(|path| is_program(path))?
    };
    let found = fs::canonicalize(found).ok()?;
    let bytes = fs::read(&found).ok()?;
    let Some(line) = bytes.strip_prefix(b"#!") else {
        return Some(found);
    };
    let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
    let words = String::from_utf8_lossy(line).into_owned();
    let mut words = words.split_ascii_whitespace();
    let interpreter = PathBuf::from(words.next()?);
    match name(&interpreter) == "env" {
        // `env NAME` looks for it as a shell does.
        true => program_of(Path::new(words.next()?)),
        false => fs::canonicalize(interpreter).ok(),
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// TCP ports on which a process listens (proc(5): /proc/PID/net/tcp, state 0A).
pub fn listening_ports(pid: u32) -> Vec<u16> {
    let sockets = sockets(pid);
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (Some(local), Some(&"0A"), Some(inode)) =
                (words.get(1), words.get(3), words.get(9))
            else {
                continue;
            };
            if inode.parse().is_ok_and(|inode| sockets.contains(&inode))
                && let Some((_, port)) = local.split_once(':')
            {
                ports.extend(u16::from_str_radix(port, 16));
            }
        }
    }
    ports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_instruction_counts() {
        assert!(contains(b"..\xbe\x1b\x54\x00\x00.."));
        assert!(!contains(b"..\xbf\x1b\x54\x00\x00.."));
        assert!(!contains(b"\x1b\x54\x00\x00"));
    }

    #[test]
    fn a_range_is_named_without_zeros() {
        let path = mapped_file(7, "00400000-7f00aa01");
        assert_eq!(path, Path::new("/proc/7/map_files/400000-7f00aa01"));
    }

    #[test]
    fn this_process_is_looked_at() {
        let pid = std::process::id();
        assert!(stamp(pid).expect("of this process").contains("VmLib"));
        let mut judge = Judge::default();
        assert_eq!(judge.process(pid).ok(), judge.process(pid).ok());
        assert_eq!(judge.asks.len(), 1);
    }

    #[test]
    fn a_name_is_enough_where_it_is_known() {
        let found = judge_file(Path::new("/no/such/nginx")).expect("known by name");
        assert_eq!(found.map(|reason| reason.name).as_deref(), Some("nginx"));
        assert!(judge_file(Path::new("/no/such/program")).is_err());
        // Reading it would not end.
        let refused = judge_file(Path::new("/dev/zero")).expect_err("a device");
        assert!(refused.to_string().contains("not a program"), "{refused}");
    }

    #[test]
    fn an_interpreter_may_ask() {
        let found = judge_file(Path::new("/no/such/python3.11")).expect("known by name");
        let found = found.expect("a reason");
        assert!(found.depends_on_script && found.name == "python3.11");
    }

    #[test]
    fn a_script_is_its_interpreter() {
        let dir = std::env::temp_dir().join(format!("hopscope-readers-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let script = dir.join("script");
        fs::write(&script, "#!/bin/sh -e\n").expect("written");
        let found = program_of(&script);
        fs::remove_dir_all(&dir).expect("removed");
        assert_eq!(found, fs::canonicalize("/bin/sh").ok());
    }
}
