//! The library as it is built: which of libc's symbols it stands for. It also has cargo build it beside the tests.
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// Everything by which a program with a socket can reach the kernel past the stack, as far as libc has a symbol for it. What is not
/// here is in KNOWN_ISSUES.md.
const HOOKS: &str = "
    socket bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt
    read readv write writev preadv2 preadv64v2 pwritev2 pwritev64v2 recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg sendfile sendfile64 splice
    poll ppoll select pselect epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
    fdopen fileno fileno_unlocked dprintf vdprintf __dprintf_chk __vdprintf_chk
    close fclose freopen freopen64 close_range closefrom dup dup2 dup3 fcntl fcntl64 ioctl
    vfork execve execv execvp execvpe fexecve execveat posix_spawn posix_spawnp _exit _Exit pthread_exit syscall
    longjmp _longjmp siglongjmp __longjmp_chk
    io_uring_queue_init io_uring_queue_init_params io_uring_queue_init_mem io_uring_setup
    __connect __select __vfork __read __write __close __send __dup2 __fcntl __poll
    __read_chk __recv_chk __recvfrom_chk __poll_chk __ppoll_chk";

fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's path");
    let folder = test.parent().expect("a folder").to_owned();
    folder.join("libhopscope_preload.so")
}

#[test]
fn every_symbol_is_there() {
    let out = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library())
        .output();
    let out = out.expect("nm: binutils");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let text = String::from_utf8(out.stdout).expect("ASCII");
    let has: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let should: BTreeSet<&str> = HOOKS.split_whitespace().collect();
    let lacks: Vec<_> = should.difference(&has).collect();
    assert!(lacks.is_empty(), "not exported: {lacks:?}");
    let more: Vec<_> = has
        .difference(&should)
        .filter(|name| !name.starts_with("rust_"))
        .collect();
    assert!(more.is_empty(), "exported, too: {more:?}");
}
