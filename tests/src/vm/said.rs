//! What a guest handed over, as `init.sh` writes it.
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::Output;

#[derive(Debug)]
pub(super) struct Run {
    pub(super) release: String,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    name: String,
    code: i32,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Run {
    /// # Errors
    /// When no step has the name.
    pub(super) fn step(&self, name: &str) -> Result<Output> {
        let step = self.find(name)?;
        Ok(Output {
            code: Some(step.code),
            stdout: String::from_utf8_lossy(&step.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&step.stderr).into_owned(),
        })
    }

    /// What a step wrote to stdout, byte for byte: files come out of the guest so.
    ///
    /// # Errors
    /// When no step has the name, or it failed.
    pub(super) fn bytes(&self, name: &str) -> Result<&[u8]> {
        let step = self.find(name)?;
        let said = String::from_utf8_lossy(&step.stderr);
        ensure!(step.code == 0, "{name} ended with {}: {said}", step.code);
        Ok(&step.stdout)
    }

    fn find(&self, name: &str) -> Result<&Step> {
        let found = self.steps.iter().find(|step| step.name == name);
        found.with_context(|| format!("no step is called {name}"))
    }
}

/// # Errors
/// When a mark is missing, or the steps are not those expected: the guest ended before its time.
pub(super) fn read(bytes: &[u8], expected: &[&str]) -> Result<Run> {
    let mut rest = bytes;
    let release = line(&mut rest)?
        .strip_prefix("release ")
        .context("the guest does not begin with its kernel's release")?
        .to_owned();
    let mut steps = Vec::new();
    for (number, name) in expected.iter().enumerate() {
        let file = format!("{number:02}-{name}");
        let begin = line(&mut rest)?;
        ensure!(
            begin == format!("begin {file}"),
            "{begin} instead of {file}"
        );
        let end = line(&mut rest).with_context(|| format!("the guest ended during {name}"))?;
        let words: Vec<&str> = end.split(' ').collect();
        let &["end", of, code, out, err] = words.as_slice() else {
            bail!("{end} instead of the end of {file}");
        };
        ensure!(of == file, "{end} instead of the end of {file}");
        steps.push(Step {
            name: (*name).to_owned(),
            code: code.parse()?,
            stdout: take(&mut rest, out.parse()?)?,
            stderr: take(&mut rest, err.parse()?)?,
        });
    }
    let done = line(&mut rest)?;
    ensure!(done == "done" && rest.is_empty(), "{done} instead of done");
    Ok(Run { release, steps })
}

fn line(rest: &mut &[u8]) -> Result<String> {
    let end = rest.iter().position(|byte| *byte == b'\n');
    let end = end.context("the guest ended before it was done")?;
    let text = std::str::from_utf8(&rest[..end])?.to_owned();
    *rest = &rest[end + 1..];
    Ok(text)
}

fn take(rest: &mut &[u8], bytes: usize) -> Result<Vec<u8>> {
    ensure!(rest.len() >= bytes, "the guest ended while it handed over");
    let (taken, after) = rest.split_at(bytes);
    *rest = after;
    Ok(taken.to_vec())
}
