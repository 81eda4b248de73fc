//! The interpreter: its largest function is a computed goto, and its own tests know what is right.
use super::measured::{Everything, bare_and_measured};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts, scratch};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Python3, PythonTests, Root};
    suite.case(
        "nf::python_computes_the_same_with_every_function_measured",
        &[Root, Fsgsbase, Python3],
        computes,
    );
    suite.case(
        "nf::python_passes_its_own_tests_with_every_function_measured",
        &[Root, Fsgsbase, Python3, PythonTests],
        own_tests,
    );
}

/// `python3` may be a script that finds the interpreter: measure the interpreter itself.
fn interpreter() -> Result<String> {
    let itself = ["-c", "import sys; print(sys.executable)"];
    let out = run(Command::new("python3").args(itself))?.expect_code(0)?;
    Ok(out.stdout.trim().to_owned())
}

const SCRIPT: &str = "
import hashlib, json, re, zlib, itertools, collections
data = {str(i): [j * i for j in range(i % 17)] for i in range(2000)}
text = json.dumps(json.loads(json.dumps(data)), sort_keys=True)
words = collections.Counter(re.findall('[0-9]+', text))
try:
    raise ValueError(sum(words.values()))
except ValueError as e:
    total = e.args[0]
packed = zlib.compress(text.encode())
perms = sum(p[0] * p[-1] for p in itertools.permutations(range(7)))
print(hashlib.sha256(packed).hexdigest(), total, perms, zlib.decompress(packed).decode() == text)
";

fn computes() -> Result<()> {
    let trace = scratch().join("python.hop");
    let python = interpreter()?;
    let command = [python.as_str(), "-I", "-c", SCRIPT];
    let (bare, output, measured) = bare_and_measured(&command, &trace)?;
    ensure!(bare == output, "different when measured: {bare}\n{output}");
    measured.expect_whole(5_000, 100_000)
}

/// One of the tests interrupts itself, which whoever runs in the background of a shell ignores.
/// Loads the extension modules before it says that it is ready, so that they are measured too.
const TESTS: &str = "
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import json, re, struct, zlib, itertools, math, binascii, collections, heapq, array, decimal
open(os.environ['READY_FILE'], 'w').close()
sys.stdin.readline()
sys.argv.insert(1, '-v')
runpy.run_module('test', run_name='__main__', alter_sys=True)
";

/// The verdict of each test, in order.
fn verdicts(dir: &Path, name: &str, measured: bool) -> Result<Vec<String>> {
    let tests = counts().pick(
        "test_struct test_binascii",
        "test_json test_struct test_zlib test_binascii test_heapq test_re test_array test_generators \
         test_exceptions",
    );
    let mut command = Command::new(interpreter()?);
    command
        .args(["-c", TESTS])
        .args(tests.split(' '))
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut python = Target::spawn(&mut command)?;
    let recording = match measured {
        true => Some(Everything::start(
            &[python.pid()],
            &dir.join(name).with_extension("hop"),
        )?),
        false => None,
    };
    let mut go = python.child().stdin.take().context("its input")?;
    go.write_all(b"\n")?;
    let out = python.output()?;
    let said = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{}: {said}", out.status);
    if let Some(recording) = recording {
        recording.finished()?.expect_sound(5_000, 1_000_000)?;
    }
    let verdict = |line: &&str| line.contains(" ... ");
    Ok(said.lines().filter(verdict).map(str::to_owned).collect())
}

fn own_tests() -> Result<()> {
    let dir = scratch();
    let bare = verdicts(&dir, "bare", false)?;
    ensure!(bare.len() > 50, "only {} verdicts", bare.len());
    let measured = verdicts(&dir, "measured", true)?;
    let other = bare.iter().zip(&measured).find(|(a, b)| a != b);
    ensure!(
        bare.len() == measured.len() && other.is_none(),
        "{} verdicts, {} when measured: {other:?}",
        bare.len(),
        measured.len()
    );
    Ok(())
}
