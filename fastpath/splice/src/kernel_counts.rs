//! Counters of kernel programs: an array of words, in the order of their enumeration.

macro_rules! kernel_counts {
    ($(#[$of:meta])* pub struct $counts:ident { $($(#[$doc:meta])* $name:ident),* $(,)? }) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $counts { $($(#[$doc])* pub $name: u64),* }

        impl $counts {
            pub(crate) const WORDS: usize = [$(stringify!($name)),*].len();

            pub(crate) fn from_words(words: &[u64; Self::WORDS]) -> $counts {
                let [$($name),*] = *words;
                $counts { $($name),* }
            }
        }
    };
}
pub(crate) use kernel_counts;
