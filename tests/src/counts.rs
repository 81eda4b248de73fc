//! How often tests repeat what they repeat.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// `make test`
    Reduced,
    /// `make soak`
    Full,
}

impl Counts {
    pub fn pick<T>(self, reduced: T, full: T) -> T {
        match self {
            Counts::Reduced => reduced,
            Counts::Full => full,
        }
    }
}

/// `HOPSCOPE_COUNTS=reduced|full`; reduced when it is not set.
///
/// # Panics
/// On any other value: a misspelt soak must not pass as one.
pub fn counts() -> Counts {
    match std::env::var("HOPSCOPE_COUNTS").as_deref() {
        Ok("full") => Counts::Full,
        Ok("reduced") | Err(_) => Counts::Reduced,
        Ok(other) => panic!("HOPSCOPE_COUNTS is {other}; it can be reduced or full"),
    }
}
