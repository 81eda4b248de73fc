//! Names that programs, files and packets give themselves, as they may be shown to people.
use core::fmt;

/// Shows a name so that it steers nothing: control characters (ESC, line ends, C1 too), what turns
/// the direction of text or breaks lines unseen, and bytes that are not UTF-8 are shown as their
/// numbers, `\x1b`, `\u{202e}`. All text for people shows foreign names through this type.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(&'a [u8]);

impl<'a> Printable<'a> {
    pub fn new(name: &'a str) -> Printable<'a> {
        Printable(name.as_bytes())
    }

    /// As the kernel gives names: any bytes.
    pub fn of_bytes(name: &'a [u8]) -> Printable<'a> {
        Printable(name)
    }
}

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.utf8_chunks() {
            let mut rest = part.valid();
            while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_steering(*c)) {
                f.write_str(&rest[..at])?;
                match u32::from(c) {
                    byte @ ..=0x9f => write!(f, "\\x{byte:02x}")?,
                    code => write!(f, "\\u{{{code:x}}}")?,
                }
                rest = &rest[at + c.len_utf8()..];
            }
            f.write_str(rest)?;
            for byte in part.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Control characters (C0, DEL, C1), marks and overrides of direction (UAX #9), separators of lines
/// and paragraphs, and what has no width.
pub fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_steer_nothing() {
        let shown = |name: &str| Printable::new(name).to_string();
        assert_eq!(shown("a\u{1b}[2J\nb"), r"a\x1b[2J\x0ab");
        assert_eq!(shown("\u{9b}31m\u{7f}\t\r"), r"\x9b31m\x7f\x09\x0d");
        assert_eq!(shown("\u{202e}cba\u{2066}"), r"\u{202e}cba\u{2066}");
        assert_eq!(shown("größe<T>::f(int) 試"), "größe<T>::f(int) 試");
        let bytes = Printable::of_bytes(b"ok\xff\x1b\xe2\x82").to_string();
        assert_eq!(bytes, r"ok\xff\x1b\xe2\x82");
    }

    #[test]
    fn nothing_steering_is_left_of_any_character() {
        for c in '\0'..=char::MAX {
            let mut buffer = [0; 4];
            let shown = Printable::new(c.encode_utf8(&mut buffer)).to_string();
            assert!(!shown.chars().any(is_steering), "{c:?}");
        }
    }
}
