//! A request and its response, one after the other.
use super::connection::{Connection, Exchange};
use super::{ClientError, Shared, Work};
use crate::sockets::Sockets;
use hopscope_stack_engine::SocketError;

/// Bytes of a response's head at most.
const HEAD_MAX: usize = 16_384;

/// Begins requests as long as each is answered at once; true when no more is to be begun.
pub(super) fn turn(
    connection: &mut Connection,
    sockets: &mut Sockets<'_>,
    shared: &mut Shared,
) -> Result<bool, ClientError> {
    loop {
        let mut exchange = match connection.exchange.take() {
            Some(exchange) => exchange,
            None if is_enough(shared) => return Ok(true),
            None => {
                shared.started += 1;
                connection.requests += 1;
                Exchange {
                    began: sockets.now,
                    sent: 0,
                    received: 0,
                    expected: match shared.plan.work {
                        Work::Http => None,
                        _ => Some(shared.plan.size as u64),
                    },
                }
            }
        };
        let sent = send(connection, &mut exchange, sockets, shared);
        let received = sent.and_then(|()| receive(connection, &mut exchange, sockets, shared));
        match received {
            Ok(true) => {
                shared.counts.answered += 1;
                shared.latency.record(sockets.now.since(exchange.began).0);
            }
            Ok(false) | Err(ClientError::Socket(SocketError::WouldBlock)) => {
                connection.exchange = Some(exchange);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_enough(shared: &Shared) -> bool {
    shared.stops
        || shared
            .plan
            .requests
            .is_some_and(|most| shared.started >= most)
}

fn send(
    connection: &mut Connection,
    exchange: &mut Exchange,
    sockets: &mut Sockets<'_>,
    shared: &mut Shared,
) -> Result<(), ClientError> {
    let (n, number) = (connection.n, connection.requests);
    let whole = match shared.plan.work {
        Work::Http => &shared.request[..],
        _ => shared.pattern.message(n, number, shared.plan.size),
    };
    while exchange.sent < whole.len() {
        match sockets.send(connection.id, &whole[exchange.sent..]) {
            Ok(sent) => {
                exchange.sent += sent;
                connection.moved = sockets.now;
                shared.counts.bytes_sent += sent as u64;
            }
            // The response begins before the request has gone, when it is an echo of much.
            Err(SocketError::WouldBlock) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// True when the response is there.
fn receive(
    connection: &mut Connection,
    exchange: &mut Exchange,
    sockets: &mut Sockets<'_>,
    shared: &mut Shared,
) -> Result<bool, ClientError> {
    loop {
        let left = exchange
            .expected
            .map(|expected| expected - exchange.received);
        if left == Some(0) {
            return Ok(true);
        }
        let room = left.map_or(HEAD_MAX, |left| {
            left.min(shared.piece.len() as u64) as usize
        });
        let read = sockets.recv(connection.id, &mut shared.piece[..room])?;
        if read == 0 {
            let received = exchange.received;
            return Err(match exchange.expected {
                Some(expected) => ClientError::Ended { received, expected },
                None => ClientError::EndedEarly,
            });
        }
        connection.moved = sockets.now;
        shared.counts.bytes_received += read as u64;
        let got = &shared.piece[..read];
        if exchange.expected.is_none() {
            connection.head.extend_from_slice(got);
            if let Some((expected, there)) = length(&connection.head)? {
                exchange.expected = Some(expected);
                exchange.received = there.min(expected);
                connection.head.clear();
            } else if connection.head.len() >= HEAD_MAX {
                return Err(SocketError::Protocol.into());
            }
            continue;
        }
        if shared.plan.work == Work::Echo && shared.plan.verify {
            let number = connection.requests;
            let message = shared
                .pattern
                .message(connection.n, number, shared.plan.size);
            let from = exchange.received as usize;
            let is_wrong = message[from..from + read] != *got;
            shared.counts.corrupt += u64::from(is_wrong);
        }
        exchange.received += read as u64;
    }
}

/// Of a response whose head is whole: bytes of its body, and how many of them are there (RFC 9112, 6.3).
///
/// # Errors
/// Protocol: no response of HTTP/1, no success, or a body whose length is not told by Content-Length.
fn length(text: &[u8]) -> Result<Option<(u64, u64)>, SocketError> {
    let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let there = (text.len() - end - 4) as u64;
    let head = str::from_utf8(&text[..end]).map_err(|_| SocketError::Protocol)?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1."))
        .and_then(|rest| rest.split(' ').nth(1)?.parse::<u16>().ok())
        .filter(|status| (200..300).contains(status))
        .ok_or(SocketError::Protocol)?;
    let mut lengths = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map(|(_, value)| value.trim().parse::<u64>().ok());
    match (lengths.next(), status) {
        (Some(Some(length)), _) => Ok(Some((length, there))),
        (None, 204) => Ok(Some((0, there))),
        _ => Err(SocketError::Protocol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_long_as_its_head_says() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel";
        assert_eq!(length(text), Ok(Some((5, 3))));
        assert_eq!(length(&text[..30]), Ok(None));
        assert_eq!(length(b"HTTP/1.1 204 No Content\r\n\r\n"), Ok(Some((0, 0))));
    }

    #[test]
    fn what_is_no_response_does_not_answer() {
        for text in [
            &b"\0\xff garbage\r\n\r\n"[..],
            b"garbage\r\n\r\n",
            b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.0 200 OK\r\n\r\n",
        ] {
            assert_eq!(length(text), Err(SocketError::Protocol));
        }
    }
}
