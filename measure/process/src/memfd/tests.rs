//! The process that gives us descriptors is this test itself.
use super::*;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::ftruncate;
use std::os::unix::fs::FileExt;

const MIB: u64 = 1 << 20;

fn make(flags: MFdFlags) -> File {
    File::from(memfd_create(c"hopscope-code", flags | MFdFlags::MFD_CLOEXEC).expect("a memfd"))
}

fn take_from_ourselves(file: &File) -> io::Result<File> {
    let pid = std::process::id() as i32;
    take(pid, pid, file.as_raw_fd() as u64, MIB)
}

fn refusal(file: &File) -> String {
    let refused = take_from_ourselves(file).expect_err("it is no new memfd of ours");
    refused.to_string()
}

#[test]
fn a_new_memfd_is_taken_and_keeps_its_length() {
    let made = make(MFdFlags::MFD_ALLOW_SEALING);
    let taken = take_from_ourselves(&made).expect("it is new");
    assert_eq!(taken.metadata().unwrap().len(), MIB);
    for len in [0, 4096, 2 * MIB] {
        assert!(ftruncate(&made, len as i64).is_err(), "cut to {len} bytes");
    }
    // Flags that the target sets on its own descriptor do not reach ours.
    fcntl(&made, FcntlArg::F_SETFL(OFlag::O_APPEND)).unwrap();
    taken
        .write_all_at(b"x", 0)
        .expect("at the start, not the end");
}

#[test]
fn a_file_is_neither_grown_nor_written() {
    let path = std::env::temp_dir().join(format!("hopscope-memfd-{}", std::process::id()));
    fs::write(&path, "theirs").unwrap();
    let open = |write| OpenOptions::new().read(true).write(write).open(&path);
    for write in [false, true] {
        let why = refusal(&open(write).unwrap());
        assert!(why.contains("something in the target replaced it"), "{why}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    fs::remove_file(&path).unwrap();
}

#[test]
fn memfds_that_are_not_new_are_refused() {
    let read_only = make(MFdFlags::MFD_ALLOW_SEALING);
    let read_only = File::open(own(&read_only)).unwrap();
    assert!(refusal(&read_only).contains("reading and writing"));

    let unsealable = make(MFdFlags::empty());
    assert!(refusal(&unsealable).contains("sealed"));

    let in_use = make(MFdFlags::MFD_ALLOW_SEALING);
    in_use.set_len(5).unwrap();
    assert!(refusal(&in_use).contains("in use"));

    let path_only = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open("/proc/self/exe");
    assert!(refusal(&path_only.unwrap()).contains("reading and writing"));
    assert!(
        take(
            std::process::id() as i32,
            std::process::id() as i32,
            1 << 40,
            MIB
        )
        .is_err()
    );
}

#[test]
fn only_memfds_of_that_name_are_seen() {
    let memfd = make(MFdFlags::empty());
    let seen = look(&own(&memfd), "hopscope-code")
        .unwrap()
        .expect("it is one");
    assert_eq!(seen.inode, memfd.metadata().unwrap().ino());
    seen.open().unwrap().write_all_at(b"x", 0).unwrap();
    assert!(look(&own(&memfd), "hopscope-rings").unwrap().is_none());

    // A deleted file in a folder of that name shows the same name, but for what is before it.
    let directory = std::env::temp_dir().join(format!("hopscope-look-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("memfd:hopscope-code");
    let file = File::create(&path).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    assert!(look(&own(&file), "hopscope-code").unwrap().is_none());
    assert_ne!(mount_of(&file).unwrap(), mount().unwrap().mount);
}
