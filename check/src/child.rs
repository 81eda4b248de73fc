//! A process of our own to try things on.
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Waits until its standard input closes.
    Wait,
    /// Enters a new network namespace and makes a veth pair in it; both vanish with the process.
    Network,
    /// Mounts securityfs where only it can see it, and says what `lockdown` holds.
    Lockdown,
}

/// Killed and reaped when it goes out of scope.
pub(crate) struct TrialChild(Child);

impl Trial {
    pub const ALL: [Trial; 3] = [Trial::Wait, Trial::Network, Trial::Lockdown];

    /// In the command line of the child.
    pub fn name(self) -> &'static str {
        match self {
            Trial::Wait => "wait",
            Trial::Network => "network",
            Trial::Lockdown => "lockdown",
        }
    }
}

impl TrialChild {
    pub(crate) fn start(trial: Trial) -> std::io::Result<TrialChild> {
        let child = Command::new("/proc/self/exe")
            .args(["check", "--as-child", trial.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(TrialChild(child))
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// The lines that the child says, up to its end or its silence.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        let Some(stdout) = self.0.stdout.take() else {
            return Vec::new();
        };
        BufReader::new(stdout)
            .lines()
            .map_while(Result::ok)
            .collect()
    }
}

impl Drop for TrialChild {
    fn drop(&mut self) {
        // It may be gone already; there is nothing else that could go wrong with our own child.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
