//! The head of a request (RFC 9112, 2 to 6): what is asked, whether the connection is kept, and what follows it.
use super::body::Body;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Other,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) is_1_0: bool,
    /// The connection ends with the response.
    pub(super) ends: bool,
    pub(super) body: Option<Body>,
    /// The client waits for 100 (Continue) before it sends the body.
    pub(super) waits: bool,
}

/// Why a head is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Bad,
    /// A transfer coding that is not known here (RFC 9112, 6.1).
    Coding,
    Version,
}

/// What lines of the head say, as far as it matters here.
#[derive(Default)]
struct Said<'a> {
    hosts: usize,
    close: bool,
    keep_alive: bool,
    length: Option<u64>,
    coding: Option<&'a [u8]>,
    waits: bool,
}

impl Request {
    /// Of a whole head, with the empty line at its end.
    pub(super) fn parse(head: &[u8]) -> Result<Request, Refused> {
        let mut lines = Lines(head);
        let line = lines.next().ok_or(Refused::Bad)?;
        let (method, is_1_0) = request_line(line)?;
        let mut said = Said::default();
        for line in lines {
            said.line(line)?;
        }
        // RFC 9112, 3.2.
        if said.hosts > 1 || said.hosts == 0 && !is_1_0 {
            return Err(Refused::Bad);
        }
        let body = match (said.coding, said.length) {
            (None, length) => length.filter(|bytes| *bytes > 0).map(Body::Bytes),
            // Requests that two servers would read differently (RFC 9112, 6.3 and 11.2).
            (Some(_), _) if is_1_0 => return Err(Refused::Bad),
            (Some(_), Some(_)) => return Err(Refused::Bad),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => {
                Some(Body::chunked())
            }
            (Some(_), None) => return Err(Refused::Coding),
        };
        Ok(Request {
            method,
            is_1_0,
            ends: said.close || is_1_0 && !said.keep_alive,
            waits: said.waits && body.is_some() && !is_1_0,
            body,
        })
    }
}

fn request_line(line: &[u8]) -> Result<(Method, bool), Refused> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refused::Bad);
    };
    if target.is_empty() || method.is_empty() || !method.iter().copied().all(is_token) {
        return Err(Refused::Bad);
    }
    let is_1_0 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        // RFC 9112, 2.3: a digit, a point, a digit.
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            if *major != b'1' {
                return Err(Refused::Version);
            }
            false
        }
        _ => return Err(Refused::Bad),
    };
    let method = match method {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        _ => Method::Other,
    };
    Ok((method, is_1_0))
}

impl<'a> Said<'a> {
    fn line(&mut self, line: &'a [u8]) -> Result<(), Refused> {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.ok_or(Refused::Bad)?);
        // No space before the colon, no line that continues one (RFC 9112, 5.1 and 5.2).
        if name.is_empty() || !name.iter().copied().all(is_token) {
            return Err(Refused::Bad);
        }
        let value = value[1..].trim_ascii();
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is(b"host") => self.hosts += 1,
            6 if is(b"expect") => self.waits = value.eq_ignore_ascii_case(b"100-continue"),
            10 if is(b"connection") => {
                for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    self.close |= word.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if is(b"content-length") => {
                let length = number(value).ok_or(Refused::Bad)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(Refused::Bad);
                }
                self.length = Some(length);
            }
            17 if is(b"transfer-encoding") => {
                let before = self.coding.replace(value);
                before.map_or(Ok(()), |_| Err(Refused::Bad))?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Digits alone: no sign.
fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// RFC 9110, 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Up to the empty one, without their ends.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.windows(2).position(|two| two == b"\r\n")?;
        let (line, rest) = self.0.split_at(end);
        self.0 = &rest[2..];
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &str) -> Result<Request, Refused> {
        Request::parse(format!("{lines}\r\n\r\n").as_bytes())
    }

    #[test]
    fn a_host_is_needed_once() {
        assert!(parsed("GET / HTTP/1.1\r\nHost: a").is_ok());
        assert!(parsed("GET / HTTP/1.1\r\nhost:").is_ok());
        assert!(parsed("GET / HTTP/1.0").is_ok());
        assert_eq!(parsed("GET / HTTP/1.1"), Err(Refused::Bad));
        assert_eq!(
            parsed("GET / HTTP/1.1\r\nHost: a\r\nHost: b"),
            Err(Refused::Bad)
        );
    }

    #[test]
    fn a_body_is_what_the_head_says() {
        let body = |lines: &str| parsed(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}"));
        let of = |lines: &str| body(lines).unwrap().body;
        assert_eq!(of("Content-Length: 5"), Some(Body::Bytes(5)));
        assert_eq!(of("Content-Length: 0"), None);
        assert_eq!(
            of("Content-Length: 5\r\ncontent-length:5"),
            Some(Body::Bytes(5))
        );
        assert_eq!(of("Transfer-Encoding: Chunked"), Some(Body::chunked()));
        for bad in [
            "Content-Length: -1",
            "Content-Length: +1",
            "Content-Length: 5, 5",
            "Content-Length: 5\r\nContent-Length: 6",
            "Content-Length: 99999999999999999999",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Content-Length : 5",
            " folded: line",
            "no colon",
        ] {
            assert_eq!(body(bad), Err(Refused::Bad), "{bad}");
        }
        assert_eq!(body("Transfer-Encoding: gzip"), Err(Refused::Coding));
        assert!(
            body("Content-Length: 5\r\nExpect: 100-continue")
                .unwrap()
                .waits
        );
    }

    #[test]
    fn request_lines() {
        for bad in [
            "hello",
            "GET /  HTTP/1.1",
            "GET / HTTP/1.1 x",
            "G(T / HTTP/1.1",
            "GET  HTTP/1.1",
        ] {
            assert_eq!(parsed(bad), Err(Refused::Bad), "{bad}");
        }
        assert_eq!(parsed("GET / HTTP/2.0"), Err(Refused::Version));
        assert_eq!(parsed("PUT / HTTP/1.0").unwrap().method, Method::Other);
    }
}
