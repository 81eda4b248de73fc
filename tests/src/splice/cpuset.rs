//! A control group of processors (version 1), gone with its value.
use anyhow::{Context, Result};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};

const ALL: &str = "/sys/fs/cgroup/cpuset";

pub(super) struct Cpuset(PathBuf);

impl Cpuset {
    /// `processors` as in "0-1,4".
    pub(super) fn new(processors: &str) -> Result<Cpuset> {
        let path = Path::new(ALL).join(format!("hopscope-tests-{}", std::process::id()));
        // It may be there: of a test that was killed, and had this process's number.
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        let group = Cpuset(path);
        let memory = fs::read_to_string(Path::new(ALL).join("cpuset.mems"))?;
        fs::write(group.0.join("cpuset.mems"), memory)?;
        group.set_processors(processors)?;
        Ok(group)
    }

    /// Those that all groups are parts of.
    pub(super) fn parents() -> Result<String> {
        Ok(fs::read_to_string(Path::new(ALL).join("cpuset.cpus"))?)
    }

    pub(super) fn set_processors(&self, processors: &str) -> Result<()> {
        Ok(fs::write(self.0.join("cpuset.cpus"), processors)?)
    }

    pub(super) fn take(&self, process: Pid) -> Result<()> {
        Ok(fs::write(self.0.join("cgroup.procs"), process.to_string())?)
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let inside = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for process in inside.lines() {
            let _ = fs::write(Path::new(ALL).join("cgroup.procs"), process);
        }
        let _ = fs::remove_dir(&self.0);
    }
}
