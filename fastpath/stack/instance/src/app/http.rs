//! Enough of HTTP/1.1 (RFC 9112) for curl, wrk and browsers: GET and HEAD of anything give the same body.
use super::server::{Next, Service};
use super::{AppCounts, PIECE_BYTES};
use crate::sockets::Sockets;
use body::Body;
use hopscope_stack_engine::{SocketError, SocketId};
use request::{Method, Refused, Request};

mod body;
mod request;

/// Bytes of a request's head at most.
const HEAD_MAX: usize = 8_192;
const BAD: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOO_LONG: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const NOT_IMPLEMENTED: &[u8] =
    b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const NOT_THIS_VERSION: &[u8] =
    b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const NOT_ALLOWED: &[u8] =
    b"HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\nContent-Length: 0\r\n\r\n";
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Bytes that are read behind a refused request, so that the refusal is not lost with a reset (RFC 9112, 9.6).
const LINGER_MAX: usize = 1 << 20;

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
            Answer::Continue => CONTINUE,
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
                counts.answered += u64::from(answer != Answer::Continue);
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
    Continue,
    Refusal(&'static [u8]),
}

#[derive(Default)]
pub struct Exchange {
    /// Of requests, as far as they were read and not handled: what is behind the one that is answered.
    unhandled: Vec<u8>,
    owed: Option<Answer>,
    sent: usize,
    ends: bool,
    /// What is left of a request's body, and what is answered then.
    body: Option<(Body, Answer)>,
    /// After a refusal: bytes that were read and thrown away since.
    lingered: Option<usize>,
    is_shut: bool,
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
            if connection.lingered.is_some() {
                return self.linger(sockets, id, connection);
            }
            if connection.ends && connection.body.is_none() {
                return Ok(Next::Close);
            }
            if !connection.unhandled.is_empty() {
                let text = std::mem::take(&mut connection.unhandled);
                let used = connection.take(&text, counts);
                connection.unhandled = text;
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

impl Http {
    /// The refusal is sent: ends the stream, and reads what the client still sends until it ends its own.
    fn linger(
        &mut self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        connection: &mut Exchange,
    ) -> Result<Next, SocketError> {
        // Once: it is an event of its own, which would lead here again without end.
        if !std::mem::replace(&mut connection.is_shut, true) {
            sockets.end_of_stream(id);
        }
        let lingered = connection.lingered.get_or_insert(0);
        while *lingered < LINGER_MAX {
            match sockets.discard(id, &mut self.piece) {
                Ok(0) => break,
                Ok(read) => *lingered += read,
                Err(SocketError::WouldBlock) => return Ok(Next::Wait),
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Close)
    }
}

impl Exchange {
    /// Takes what can be from the start of `bytes`, until an answer is owed; returns how many bytes that were.
    fn take(&mut self, bytes: &[u8], counts: &mut AppCounts) -> usize {
        let mut used = 0;
        while self.owed.is_none() && used < bytes.len() {
            let rest = &bytes[used..];
            let taken = match &mut self.body {
                Some((body, answer)) => match body.skip(rest) {
                    Ok((count, over)) => {
                        if over {
                            self.owed = Some(*answer);
                            self.body = None;
                        }
                        count
                    }
                    Err(body::Malformed) => {
                        self.refuse(BAD, counts);
                        0
                    }
                },
                // Lines that are empty come before a request of some clients (RFC 9112, 2.2).
                None if rest.starts_with(b"\r\n") => 2,
                None => self.take_head(rest, counts),
            };
            if taken == 0 {
                break;
            }
            used += taken;
        }
        used
    }

    /// 0: there is not a whole one.
    fn take_head(&mut self, bytes: &[u8], counts: &mut AppCounts) -> usize {
        let Some(len) = head_bytes(bytes) else {
            if bytes.len() >= HEAD_MAX {
                self.refuse(TOO_LONG, counts);
            }
            return 0;
        };
        match Request::parse(&bytes[..len]) {
            Ok(request) => self.asked(&request, counts),
            Err(Refused::Bad) => self.refuse(BAD, counts),
            Err(Refused::Coding) => self.refuse(NOT_IMPLEMENTED, counts),
            Err(Refused::Version) => self.refuse(NOT_THIS_VERSION, counts),
        }
        len
    }

    fn asked(&mut self, request: &Request, counts: &mut AppCounts) {
        // A refusal of HTTP/1.0 says nothing of keeping the connection.
        self.ends = request.ends || request.is_1_0 && request.method == Method::Other;
        let kept = request.is_1_0 && !request.ends;
        let answer = match (request.method, kept) {
            (Method::Get, false) => Answer::Whole,
            (Method::Head, false) => Answer::Head,
            (Method::Get, true) => Answer::WholeKept,
            (Method::Head, true) => Answer::HeadKept,
            (Method::Other, _) => {
                counts.corrupt += 1;
                Answer::Refusal(NOT_ALLOWED)
            }
        };
        match request.body {
            None => self.owed = Some(answer),
            Some(body) => {
                self.body = Some((body, answer));
                self.owed = request.waits.then_some(Answer::Continue);
            }
        }
    }

    fn refuse(&mut self, text: &'static [u8], counts: &mut AppCounts) {
        counts.corrupt += 1;
        self.owed = Some(Answer::Refusal(text));
        self.body = None;
        self.ends = true;
        self.lingered = Some(0);
    }
}

/// Up to the empty line, with it.
fn head_bytes(bytes: &[u8]) -> Option<usize> {
    let end = b"\r\n\r\n";
    let first = bytes.windows(end.len()).position(|four| four == end)?;
    Some(first + end.len())
}

#[cfg(test)]
mod tests;
