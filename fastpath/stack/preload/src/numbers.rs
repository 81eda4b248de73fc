//! Numbers of the library's own descriptors.
use crate::kernel;
use crate::table;
use nix::libc;

/// The same descriptor, with a number that programs do not come to.
pub fn out_of_the_way(fd: i32) -> Result<i32, i32> {
    let moved = again(fd);
    kernel::close(fd);
    moved
}

/// No number is as high as this one.
pub fn limit() -> u64 {
    let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE);
    limit.map_or(1024, |(soft, _)| soft.min(table::DESCRIPTORS_MAX as u64))
}

/// The descriptor once more, with such a number. The program may have lowered its limit.
pub fn again(fd: i32) -> Result<i32, i32> {
    let limit = limit();
    let lowest = limit - limit.min(1024) / 4;
    Ok(kernel::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest as i32)? as i32)
}
