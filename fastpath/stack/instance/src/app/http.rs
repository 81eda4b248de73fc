//! Enough of HTTP/1.1 (RFC 9112) for curl, wrk and browsers: GET and HEAD of anything give the same body.
use super::server::{Next, Service};
use super::{AppCounts, PIECE_BYTES};
use crate::sockets::Sockets;
use hopscope_stack_engine::{SocketError, SocketId};

/// Bytes of a request's head at most.
const HEAD_MAX: usize = 8_192;
const BAD: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOO_LONG: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const NOT_ALLOWED: &[u8] = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

pub struct Http {
    piece: Box<[u8]>,
    answer: Response,
    /// For HTTP/1.0, which does not keep a connection that is not said to be kept (RFC 9112, C.2.2).
    answer_kept: Response,
}

struct Response {
    /// Head and body.
    bytes: Box<[u8]>,
    head_bytes: usize,
}

impl Response {
    fn new(body_bytes: usize, line: &str) -> Response {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {body_bytes}\r\n{line}\r\n"
        );
        let mut bytes = head.clone().into_bytes();
        let text = b"hopscope stack serve --app http. ";
        bytes.extend(text.iter().cycle().take(body_bytes));
        Response {
            head_bytes: head.len(),
            bytes: bytes.into(),
        }
    }
}

impl Http {
    /// Answers with so many bytes.
    #[must_use]
    pub fn new(body_bytes: usize) -> Http {
        Http {
            piece: vec![0; PIECE_BYTES].into(),
            answer: Response::new(body_bytes, ""),
            answer_kept: Response::new(body_bytes, "Connection: keep-alive\r\n"),
        }
    }

    fn bytes(&self, answer: Answer) -> &[u8] {
        match answer {
            Answer::Whole => &self.answer.bytes,
            Answer::Head => &self.answer.bytes[..self.answer.head_bytes],
            Answer::WholeKept => &self.answer_kept.bytes,
            Answer::HeadKept => &self.answer_kept.bytes[..self.answer_kept.head_bytes],
            Answer::Refusal(text) => text,
        }
    }

    /// Sends what is owed; false: not all of it.
    fn answer(
        &self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        connection: &mut Exchange,
        counts: &mut AppCounts,
    ) -> Result<bool, SocketError> {
        while let Some(answer) = connection.owed {
            let bytes = self.bytes(answer);
            match sockets.send(id, &bytes[connection.sent..]) {
                Ok(sent) => {
                    counts.bytes_sent += sent as u64;
                    connection.sent += sent;
                }
                Err(SocketError::WouldBlock) => return Ok(false),
                Err(error) => return Err(error),
            }
            if connection.sent == bytes.len() {
                connection.owed = None;
                connection.sent = 0;
                counts.answered += 1;
            }
        }
        Ok(true)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Whole,
    Head,
    WholeKept,
    HeadKept,
    Refusal(&'static [u8]),
}

#[derive(Default)]
pub struct Exchange {
    /// Of requests, as far as they were read and not handled: what is behind the one that is answered.
    unhandled: Vec<u8>,
    owed: Option<Answer>,
    sent: usize,
    ends: bool,
}

impl Service for Http {
    type Connection = Exchange;

    fn serve(
        &mut self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        connection: &mut Exchange,
        counts: &mut AppCounts,
    ) -> Result<Next, SocketError> {
        loop {
            if !self.answer(sockets, id, connection, counts)? {
                return Ok(Next::Wait);
            }
            if connection.ends {
                return Ok(Next::Close);
            }
            if !connection.unhandled.is_empty() {
                let head = std::mem::take(&mut connection.unhandled);
                let used = connection.take(&head, counts);
                connection.unhandled = head;
                connection.unhandled.drain(..used);
                if connection.owed.is_some() {
                    continue;
                }
            }
            let room = HEAD_MAX.saturating_sub(connection.unhandled.len()).max(1);
            let read = sockets.recv(id, &mut self.piece[..room])?;
            if read == 0 {
                return Ok(Next::Close);
            }
            counts.bytes_received += read as u64;
            if connection.unhandled.is_empty() {
                // The common case, without a copy: a request is one segment.
                let used = connection.take(&self.piece[..read], counts);
                connection
                    .unhandled
                    .extend_from_slice(&self.piece[used..read]);
            } else {
                connection.unhandled.extend_from_slice(&self.piece[..read]);
            }
        }
    }
}

impl Exchange {
    /// Takes one request from the start of `bytes`; returns how many bytes that were: 0 where there is not a whole one.
    fn take(&mut self, bytes: &[u8], counts: &mut AppCounts) -> usize {
        let Some(len) = head_bytes(bytes) else {
            if bytes.len() >= HEAD_MAX {
                self.refuse(TOO_LONG, counts);
            }
            return 0;
        };
        let head = &bytes[..len];
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let is_1_0 = line.ends_with(b" HTTP/1.0");
        if !is_1_0 && !line.ends_with(b" HTTP/1.1") {
            self.refuse(BAD, counts);
            return len;
        }
        let close = has_line(head, b"connection: close");
        self.ends = close || is_1_0 && !has_line(head, b"connection: keep-alive");
        let kept = is_1_0 && !self.ends;
        match (line.split(|byte| *byte == b' ').next(), kept) {
            (Some(b"GET"), false) => self.owed = Some(Answer::Whole),
            (Some(b"HEAD"), false) => self.owed = Some(Answer::Head),
            (Some(b"GET"), true) => self.owed = Some(Answer::WholeKept),
            (Some(b"HEAD"), true) => self.owed = Some(Answer::HeadKept),
            _ => self.refuse(NOT_ALLOWED, counts),
        }
        len
    }

    fn refuse(&mut self, text: &'static [u8], counts: &mut AppCounts) {
        counts.corrupt += 1;
        self.owed = Some(Answer::Refusal(text));
        self.ends = true;
    }
}

/// Up to the empty line, with it.
fn head_bytes(bytes: &[u8]) -> Option<usize> {
    let end = b"\r\n\r\n";
    let first = bytes.windows(end.len()).position(|four| four == end)?;
    Some(first + end.len())
}

/// Whether a line says so, in letters of any case.
fn has_line(head: &[u8], wanted: &[u8]) -> bool {
    let mut lines = head.split(|byte| *byte == b'\n');
    lines.any(|line| line.trim_ascii_end().eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests;
