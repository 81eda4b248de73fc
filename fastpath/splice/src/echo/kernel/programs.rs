//! The compiled programs, loaded and attached.
use super::contract::Config;
use crate::echo::{EchoError, KernelPlan};
use hopscope_bpf::object::{self, has_capabilities};
use hopscope_bpf::{BpfError, compiled};
use libbpf_rs::{Link, Object, OpenObject};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

static OBJECT: &[u8] = compiled!("echo");

pub(super) fn load(config: &Config) -> Result<Object, EchoError> {
    let configured = |open: &mut OpenObject| object::set_rodata(open, &config.to_bytes());
    Ok(object::load(
        OBJECT,
        "hopecho",
        has_capabilities,
        configured,
    )?)
}

/// The verdict first: a socket that is put into the map gets the program that is there then.
pub(super) fn attach(object: &Object, plan: &KernelPlan) -> Result<Link, EchoError> {
    let servers = object::map(object, "servers")?;
    object::program(object, "echo_verdict")?
        .attach_sockmap(servers.as_fd().as_raw_fd())
        .map_err(BpfError::with_cause("attaching the verdict"))?;
    let refused = |why: String| EchoError::Cgroup {
        cgroup: plan.cgroup.display().to_string(),
        why,
    };
    let cgroup = File::open(&plan.cgroup).map_err(|error| refused(error.to_string()))?;
    let sockops = object::program(object, "echo_sockops")?;
    sockops
        .attach_cgroup(cgroup.as_raw_fd())
        .map_err(|error| refused(error.to_string()))
}
