//! The body of a request: nobody wants it, but the next request begins behind it (RFC 9112, 6 and 7).

/// What is left of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Bytes(u64),
    Chunked(Chunks),
}

/// Where in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In the line with a chunk's size, of which so many digits were seen.
    Size { bytes: u64, digits: u8 },
    /// Behind the size: extensions, up to the end of the line.
    Extension { bytes: u64, length: u16 },
    /// In the chunk and the end of line behind it.
    Data { left: u64, end: u8 },
    /// In a line of the trailer section, of which so many bytes were seen.
    Trailer { length: u16 },
}

/// A line of sizes or trailers at most.
const LINE_MAX: u16 = 4_096;

/// It is not chunked as it says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Body {
    pub(super) fn chunked() -> Body {
        Body::Chunked(Chunks::Size {
            bytes: 0,
            digits: 0,
        })
    }

    /// How many of `bytes` belong to it, and whether it ends with them.
    pub(super) fn skip(&mut self, bytes: &[u8]) -> Result<(usize, bool), Malformed> {
        match self {
            Body::Bytes(left) => {
                let used = (bytes.len() as u64).min(*left);
                *left -= used;
                Ok((used as usize, *left == 0))
            }
            Body::Chunked(chunks) => chunks.skip(bytes),
        }
    }
}

impl Chunks {
    fn skip(&mut self, bytes: &[u8]) -> Result<(usize, bool), Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            if let Chunks::Data { left, .. } = self
                && *left > 0
            {
                let used = ((bytes.len() - at) as u64).min(*left);
                *left -= used;
                at += used as usize;
                continue;
            }
            let (next, over) = self.byte(bytes[at])?;
            *self = next;
            at += 1;
            if over {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// A byte that is not of a chunk's data; true: the body ends with it.
    fn byte(self, byte: u8) -> Result<(Chunks, bool), Malformed> {
        let next = match (self, byte) {
            (Chunks::Size { bytes, digits }, byte) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let bytes = bytes.checked_mul(16).ok_or(Malformed)?;
                Chunks::Size {
                    bytes: bytes | u64::from(digit),
                    digits: digits.saturating_add(1),
                }
            }
            (Chunks::Size { digits: 0, .. }, _) => return Err(Malformed),
            (Chunks::Size { bytes, .. }, b'\r' | b';' | b' ' | b'\t') => {
                Chunks::Extension { bytes, length: 0 }
            }
            (Chunks::Extension { bytes: 0, .. }, b'\n') => Chunks::Trailer { length: 0 },
            (Chunks::Extension { bytes, .. }, b'\n') => Chunks::Data {
                left: bytes,
                end: 0,
            },
            (Chunks::Extension { bytes, length }, _) if length < LINE_MAX => Chunks::Extension {
                bytes,
                length: length + 1,
            },
            (Chunks::Data { left, end: 0 }, b'\r') => Chunks::Data { left, end: 1 },
            (Chunks::Data { end: 1, .. }, b'\n') => Chunks::Size {
                bytes: 0,
                digits: 0,
            },
            (Chunks::Trailer { length: 0 }, b'\r') => Chunks::Trailer { length: 0 },
            (Chunks::Trailer { length: 0 }, b'\n') => return Ok((self, true)),
            (Chunks::Trailer { .. }, b'\n') => Chunks::Trailer { length: 0 },
            (Chunks::Trailer { length }, _) if length < LINE_MAX => {
                Chunks::Trailer { length: length + 1 }
            }
            _ => return Err(Malformed),
        };
        Ok((next, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that belong to it, however they come.
    fn skipped(text: &str, piece: usize) -> Result<(usize, bool), Malformed> {
        let mut body = Body::chunked();
        let mut used = 0;
        for piece in text.as_bytes().chunks(piece) {
            let (count, over) = body.skip(piece)?;
            used += count;
            if over {
                return Ok((used, true));
            }
        }
        Ok((used, false))
    }

    #[test]
    fn a_chunked_body_ends_where_it_says() {
        for body in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "5;name=value\r\nhel\r\n\r\nA\r\n0123456789\r\n000\r\n\r\n",
            "1\r\n\n\r\n0\r\nTrailer: a\r\nOther: b\r\n\r\n",
        ] {
            let text = format!("{body}GET / HTTP/1.1\r\n");
            for piece in [1, 2, 3, 1000] {
                assert_eq!(skipped(&text, piece), Ok((body.len(), true)), "{body:?}");
            }
            let cut = &body[..body.len() - 1];
            assert_eq!(skipped(cut, 1000), Ok((cut.len(), false)));
        }
    }

    #[test]
    fn what_is_not_chunked_is_refused() {
        for text in [
            "\r\n",
            "x\r\n",
            "2\r\nabc",
            "11111111111111111\r\n",
            "5\r\nhello0\r\n",
        ] {
            assert_eq!(skipped(text, 1000), Err(Malformed), "{text:?}");
        }
        let long = format!("1;{}", "x".repeat(5_000));
        assert_eq!(skipped(&long, 1000), Err(Malformed));
    }
}
