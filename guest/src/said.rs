//! What a guest handed over, as `init.sh` writes it.
use crate::error::{Error, Result};

#[derive(Debug)]
pub struct Run {
    /// Of the kernel that was booted.
    pub release: String,
    /// Times that the guest began; the steps are those of the last.
    pub boots: u32,
    steps: Vec<Step>,
}

#[derive(Debug)]
pub struct Step {
    pub name: String,
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Run {
    /// # Errors
    /// When no step has the name.
    pub fn step(&self, name: &str) -> Result<&Step> {
        let found = self.steps.iter().find(|step| step.name == name);
        found.ok_or_else(|| Error::NoStep(name.to_owned()))
    }
}

/// # Errors
/// When a mark is missing, or the steps are not those expected: the guest ended before its time, or rebooted
/// more or less often than it was to.
pub(crate) fn read(bytes: &[u8], expected: &[String], reboots: u32) -> Result<Run> {
    let mut rest = bytes;
    let mut boots = 1;
    let first = line(&mut rest)?;
    let release = first.strip_prefix("release ").ok_or_else(|| {
        Error::Said("the guest does not begin with its kernel's release".to_owned())
    })?;
    let mut steps = Vec::new();
    let mut numbered = expected.iter().enumerate();
    while let Some((number, name)) = numbered.next() {
        let file = format!("{number:02}-{name}");
        let begin = line(&mut rest)?;
        if begin != format!("begin {file}") {
            return Err(Error::Said(format!("{begin} instead of {file}")));
        }
        let end = line(&mut rest)
            .map_err(|error| Error::Said(format!("the guest ended during {name}: {error}")))?;
        if boots <= reboots && end == first {
            boots += 1;
            steps.clear();
            numbered = expected.iter().enumerate();
            continue;
        }
        let (code, out, err) = ended(&end, &file)
            .ok_or_else(|| Error::Said(format!("{end} instead of the end of {file}")))?;
        steps.push(Step {
            name: name.clone(),
            code,
            stdout: take(&mut rest, out)?,
            stderr: take(&mut rest, err)?,
        });
    }
    let done = line(&mut rest)?;
    if done != "done" || !rest.is_empty() {
        return Err(Error::Said(format!("{done} instead of done")));
    }
    if boots != reboots + 1 {
        let why = format!(
            "the guest rebooted {} times instead of {reboots}",
            boots - 1
        );
        return Err(Error::Said(why));
    }
    Ok(Run {
        release: release.to_owned(),
        boots,
        steps,
    })
}

/// Code and sizes of `end FILE CODE BYTES BYTES`.
fn ended(line: &str, file: &str) -> Option<(i32, usize, usize)> {
    let words: Vec<&str> = line.split(' ').collect();
    let &["end", of, code, out, err] = words.as_slice() else {
        return None;
    };
    let numbers = (code.parse().ok()?, out.parse().ok()?, err.parse().ok()?);
    (of == file).then_some(numbers)
}

fn line(rest: &mut &[u8]) -> Result<String> {
    let end = rest.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or_else(|| Error::Said("the guest ended before it was done".to_owned()))?;
    let text = String::from_utf8_lossy(&rest[..end]).into_owned();
    *rest = &rest[end + 1..];
    Ok(text)
}

fn take(rest: &mut &[u8], bytes: usize) -> Result<Vec<u8>> {
    if rest.len() < bytes {
        let why = "the guest ended while it handed over";
        return Err(Error::Said(why.to_owned()));
    }
    let (taken, after) = rest.split_at(bytes);
    *rest = after;
    Ok(taken.to_vec())
}
