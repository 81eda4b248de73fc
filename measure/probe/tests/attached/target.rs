//! Programs to attach to: compiled once, spoken to through stdin and stdout.
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub fn compile(name: &str) -> PathBuf {
    compile_with(name, &[])
}

pub fn compile_with(name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/targets/{name}.c"));
    // Cases run in parallel, in one process: each build has a name of its own.
    static BUILDS: AtomicU32 = AtomicU32::new(0);
    let build = BUILDS.fetch_add(1, Ordering::Relaxed);
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{build}"));
    let done = Command::new("gcc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&out)
        .arg("-lrt")
        .status()
        .expect("gcc is installed");
    assert!(done.success(), "{name}.c does not compile");
    out
}

pub struct Target {
    child: Child,
    pid: i32,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Target {
    pub fn start(program: &Path, argument: &str) -> Target {
        let mut command = Command::new(program);
        Target::spawn(command.arg(argument))
    }

    /// As the first process of a pid namespace; `None` where that is not allowed.
    pub fn start_nested(program: &Path) -> Option<Target> {
        let mut command = Command::new("unshare");
        let mut target = Target::spawn(command.args(["--pid", "--fork"]).arg(program));
        let outer = target.child.id();
        let children = format!("/proc/{outer}/task/{outer}/children");
        while target.child.try_wait().expect("our child").is_none() {
            let child = std::fs::read_to_string(&children).unwrap_or_default();
            if let Ok(pid) = child.trim().parse() {
                target.pid = pid;
                return Some(target);
            }
            std::thread::yield_now();
        }
        None
    }

    fn spawn(command: &mut Command) -> Target {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was compiled");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.expect("piped"));
        Target {
            pid: child.id() as i32,
            child,
            input,
            output,
        }
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Empty at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a pipe");
        line.trim_end().to_owned()
    }

    /// One byte on its stdin, which stays open.
    pub fn tell(&mut self) {
        let input = self.input.as_mut().expect("still open");
        input.write_all(b"x").expect("the target reads it");
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("our child").code()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
