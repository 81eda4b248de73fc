//! `-C` and `-W`: a file that is full is ended in order, and the next begins; tcpdump's names.
use std::path::{Path, PathBuf};

/// Which file is written, of those that `-w` or `-o`, `-C` and `-W` ask for.
pub struct Rotation {
    first: PathBuf,
    /// Bytes.
    full: u64,
    /// `-W`: after so many the first is written anew.
    files: Option<u32>,
    at: u64,
}

impl Rotation {
    /// `millions` of bytes a file.
    pub fn new(first: &Path, millions: u64, files: Option<u32>) -> Rotation {
        Rotation {
            first: first.to_owned(),
            full: millions.saturating_mul(1_000_000),
            files,
            at: 0,
        }
    }

    pub fn is_full(&self, bytes: u64) -> bool {
        bytes >= self.full
    }

    pub fn step(&mut self) {
        self.at += 1;
    }

    /// The first has no number unless their number is known: then all have as many digits, so that
    /// they sort.
    pub fn path(&self) -> PathBuf {
        let number = match self.files {
            None if self.at == 0 => return self.first.clone(),
            None => self.at.to_string(),
            Some(files) => {
                let files = u64::from(files.max(1));
                let digits = (files - 1).to_string().len();
                format!("{:0digits$}", self.at % files)
            }
        };
        let mut name = self.first.as_os_str().to_owned();
        name.push(number);
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: Option<u32>, steps: usize) -> Vec<String> {
        let mut rotation = Rotation::new(Path::new("x.hop"), 1, files);
        let mut names = Vec::new();
        for _ in 0..steps {
            names.push(rotation.path().display().to_string());
            rotation.step();
        }
        names
    }

    #[test]
    fn names_are_tcpdumps() {
        assert_eq!(names(None, 3), ["x.hop", "x.hop1", "x.hop2"]);
        assert_eq!(names(Some(2), 3), ["x.hop0", "x.hop1", "x.hop0"]);
        assert_eq!(names(Some(11), 2), ["x.hop00", "x.hop01"]);
    }

    #[test]
    fn a_file_is_full_at_its_size() {
        let rotation = Rotation::new(Path::new("x"), 2, None);
        assert!(rotation.is_full(2_000_000));
        assert!(!rotation.is_full(1_999_999));
    }
}
