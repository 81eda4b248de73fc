//! Which source an event is of.

/// A kind of source, numbered by its loop, and which one of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub source: u8,
    /// Below 2^56.
    pub key: u64,
}

const KEY_BITS: u32 = 56;

impl Token {
    /// Of a source that there is one of.
    pub const fn of(source: u8) -> Token {
        Token { source, key: 0 }
    }

    pub const fn new(source: u8, key: u64) -> Token {
        Token { source, key }
    }

    pub(crate) fn to_data(self) -> u64 {
        debug_assert!(self.key >> KEY_BITS == 0, "{self:?}");
        u64::from(self.source) << KEY_BITS | self.key
    }

    pub(crate) fn of_data(data: u64) -> Token {
        Token {
            source: (data >> KEY_BITS) as u8,
            key: data & ((1 << KEY_BITS) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_kernel() {
        for token in [
            Token::of(0),
            Token::new(255, (1 << 56) - 1),
            Token::new(3, 7),
        ] {
            assert_eq!(Token::of_data(token.to_data()), token);
        }
    }
}
