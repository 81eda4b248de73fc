//! frida's Interceptor with empty C callbacks at entry and exit, driven by its Python binding.
use super::{Bench, Measured, installed};
use crate::error::{Error, Result};
use crate::passes::{Pairs, pass};
use crate::program::Target;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

const PHASES: [&str; 3] = ["hot_e5", "indep_e5", "rr_e5"];
const SCRIPT: &str = include_str!("frida.py");

struct Agent(Child);

impl Agent {
    /// Returns when all functions are intercepted.
    fn attach(pid: i32) -> Result<Agent> {
        let mut child = Command::new("python3")
            .args(["-c", SCRIPT, &pid.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::start("python3"))?;
        let stdout = child.stdout.take();
        let agent = Agent(child);
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(Error::file("read from", "frida"))?;
        }
        match line.trim() {
            "ready 1000" => Ok(agent),
            said => Err(Error::failed("frida", "not ready", said)),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // End of input makes the script detach.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

pub(crate) fn attach(bench: &Bench<'_>) -> Measured {
    installed("python3")?;
    let has = Command::new("python3")
        .args(["-c", "import frida"])
        .stderr(Stdio::null())
        .status();
    if !has.is_ok_and(|status| status.success()) {
        return Err("frida is not installed (Python module)".into());
    }
    let mut pairs = Pairs::default();
    let mut repeat = || {
        // A process of its own each time: it has been seen to crash its target when it detaches.
        let mut target = Target::start(bench.plain)?;
        let before = pass(&mut target, &PHASES, bench.milliseconds)?;
        let agent = Agent::attach(target.pid)?;
        let measured = pass(&mut target, &PHASES, bench.milliseconds)?;
        drop(agent);
        let mut target = Target::start(bench.plain)?;
        let after = pass(&mut target, &PHASES, bench.milliseconds)?;
        pairs.add(&before, &measured, &after);
        Ok::<_, Error>(())
    };
    for _ in 0..bench.repetitions {
        repeat().map_err(|e| e.to_string())?;
    }
    Ok(pairs.rows("frida", "empty, onEnter+onLeave", &PHASES))
}
