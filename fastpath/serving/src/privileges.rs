//! What a server keeps once its port and its sockets are open: nothing. Packets, doorbells, the guest's memory and
//! new front ends come by descriptors, and the kernel asks no capability for their use.
use crate::error::ServingError;
use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, User, initgroups, setresgid, setresuid};
use std::ffi::CString;

/// Who a server runs as, once it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunAs {
    name: CString,
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
}

impl RunAs {
    /// # Errors
    /// No such user.
    pub fn named(name: &str) -> Result<RunAs, ServingError> {
        let nobody = || ServingError::NoUser { name: name.into() };
        let user = User::from_name(name).map_err(ServingError::system("looking for the user"))?;
        let user = user.ok_or_else(nobody)?;
        Ok(RunAs {
            name: CString::new(user.name).map_err(|_| nobody())?,
            uid: user.uid,
            gid: user.gid,
        })
    }

    pub(crate) fn refused(&self, source: Errno) -> ServingError {
        ServingError::RunAs {
            name: self.name.to_string_lossy().into(),
            source: source.into(),
        }
    }
}

/// Changes to `user` with its groups, gives up all capabilities, and the way back to any (`no_new_privs`).
/// To be called while there is one thread: each has its own.
///
/// # Errors
/// The kernel refuses to change the user; there are other threads.
pub fn drop_all(user: Option<&RunAs>) -> Result<(), ServingError> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads != 1 {
        let source =
            std::io::Error::other(format!("{threads} threads run: a fault of this program"));
        let doing = "giving up privileges";
        return Err(ServingError::System { doing, source });
    }
    if let Some(user @ RunAs { name, uid, gid }) = user {
        let refused = |source| user.refused(source);
        // The user last: whoever is not root may not change the groups.
        initgroups(name, *gid).map_err(refused)?;
        setresgid(*gid, *gid, *gid).map_err(refused)?;
        setresuid(*uid, *uid, *uid).map_err(refused)?;
    }
    prctl::set_no_new_privs().map_err(ServingError::system("giving up new privileges"))?;
    no_capabilities().map_err(ServingError::system("giving up capabilities"))
}

/// `struct __user_cap_header_struct` (linux/capability.h)
#[repr(C)]
struct Header {
    version: u32,
    /// 0: the calling thread.
    pid: i32,
}

/// Of two: 64 capabilities in sets of 32.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `_LINUX_CAPABILITY_VERSION_3`
const VERSION_3: u32 = 0x2008_0522;

fn no_capabilities() -> nix::Result<()> {
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let none = [Sets::default(); 2];
    // SAFETY: capset(2) reads a header and, as this version says, two sets; both live over the call.
    let done = unsafe { libc::syscall(libc::SYS_capset, &header, none.as_ptr()) };
    Errno::result(done).map(drop)
}
