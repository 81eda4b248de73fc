//! Sets of named bits.

/// A type of bits, each `NAME = BIT "name" "what it says"`, which is its documentation, too.
#[macro_export]
macro_rules! flags {
    (
        $(#[$of:meta])* $vis:vis struct $flags:ident($of_bits:vis $bits:ty);
        $($name:ident = $bit:literal $word:literal $what:literal),* $(,)?
    ) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        $vis struct $flags($of_bits $bits);

        impl $flags {
            pub const NONE: $flags = $flags(0);
            $(#[doc = $what] pub const $name: $flags = $flags(1 << $bit);)*
            pub const NAMES: &'static [($flags, &'static str)] = &[$(($flags::$name, $word)),*];

            pub const fn contains(self, other: $flags) -> bool {
                self.0 & other.0 == other.0
            }

            pub const fn intersects(self, other: $flags) -> bool {
                self.0 & other.0 != 0
            }

            pub fn names(self) -> impl Iterator<Item = &'static str> {
                let named = $flags::NAMES.iter();
                named.filter(move |(flag, _)| self.contains(*flag)).map(|(_, name)| *name)
            }
        }

        impl core::ops::BitOr for $flags {
            type Output = $flags;
            fn bitor(self, rhs: $flags) -> $flags {
                $flags(self.0 | rhs.0)
            }
        }

        impl core::ops::BitOrAssign for $flags {
            fn bitor_assign(&mut self, rhs: $flags) {
                *self = *self | rhs;
            }
        }

        /// Their names, with `+` between; `-` for none. Bits without a name are shown as a number.
        impl core::fmt::Display for $flags {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let known = $flags::NAMES.iter().fold(0, |known, (flag, _)| known | flag.0);
                let mut separator = "";
                for name in self.names() {
                    write!(f, "{separator}{name}")?;
                    separator = "+";
                }
                match (self.0 & !known, separator) {
                    (0, "") => f.write_str("-"),
                    (0, _) => Ok(()),
                    (bits, _) => write!(f, "{separator}{bits:#x}"),
                }
            }
        }

        impl core::fmt::Debug for $flags {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({self})", stringify!($flags))
            }
        }
    };
}
