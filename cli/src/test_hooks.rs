//! What only tests ask for: points at which a recorder is killed or fails (`hopscope_process::fault`), and flags
//! that are not in the help. Packages are built without the feature `fault-injection`: there nothing reads
//! `HOPSCOPE_FAULT_POINT` and its kin, and the flags are refused.
use anyhow::bail;
use hopscope_process::fault::ENABLED;

/// Says of a test build that it is one.
pub(crate) const VERSION: &str = if ENABLED {
    concat!(env!("CARGO_PKG_VERSION"), " (test build: fault-injection)")
} else {
    env!("CARGO_PKG_VERSION")
};

/// `flags`: names, and whether they were given.
pub(crate) fn refuse_where_missing(flags: &[(&str, bool)]) -> anyhow::Result<()> {
    match flags.iter().find(|(_, given)| *given) {
        Some((flag, _)) if !ENABLED => {
            bail!("{flag} is for tests: this binary is built without the feature fault-injection")
        }
        _ => Ok(()),
    }
}
