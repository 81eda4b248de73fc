//! Resource limits of hopscope itself; a target's own limits are looked at when attaching.
use crate::capability::{Capability, Verdict};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// Descriptors that a recording of a few processes holds, with room to spare.
const FILES_WANTED: u64 = 256;

pub(crate) fn capabilities() -> Vec<Capability> {
    vec![files(), locked()]
}

fn files() -> Capability {
    let remedy = "ulimit -n 1024";
    let verdict = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, _)) if soft >= FILES_WANTED => Verdict::ok(format!("{} files", amount(soft))),
        Ok((soft, _)) => Verdict::missing(format!("only {soft} files"), remedy),
        Err(error) => Verdict::unknown(error.to_string(), remedy),
    };
    let purpose = "the descriptors of each measured process and of the trace file";
    Capability::new("limit-nofile", purpose, "getrlimit", verdict)
}

fn locked() -> Capability {
    let remedy = "ulimit -l unlimited";
    let verdict = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((0, _)) => Verdict::missing("no memory may be locked", remedy),
        Ok((soft, _)) => Verdict::ok(format!("{} bytes may be locked", amount(soft))),
        Err(error) => Verdict::unknown(error.to_string(), remedy),
    };
    let purpose = "buffers of perf events (off-CPU time); hopscope's own rings are not locked";
    Capability::new("limit-memlock", purpose, "getrlimit", verdict)
}

fn amount(value: u64) -> String {
    match value {
        RLIM_INFINITY => "unlimited".into(),
        value => value.to_string(),
    }
}
