//! `-Z`: once hooks are attached, nothing of what is left to do needs privileges.
use crate::error::{Context, Result, require};
use nix::unistd::{User, setgid, setgroups, setuid};

/// The user and its first group alone, for good. Links, maps and the ring stay open.
///
/// # Errors
/// There is no such user, or this process may not become it.
pub fn become_user(name: &str) -> Result<()> {
    let user = User::from_name(name).with_context(|| format!("-Z {name}"))?;
    let user = user.with_context(|| format!("-Z {name}: no user has this name"))?;
    let may_not = || format!("-Z {name}: becoming this user");
    setgroups(&[user.gid]).with_context(may_not)?;
    setgid(user.gid).with_context(may_not)?;
    setuid(user.uid).with_context(may_not)?;
    require!(
        user.uid.is_root() || setuid(nix::unistd::ROOT).is_err(),
        "-Z {name}: privileges could be regained"
    );
    Ok(())
}
