//! Servers with known faults, in this process: what the client says of them can be checked.
use anyhow::Result;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Answers each request of `SIZE` bytes with what `answer` makes of it, a thread each connection.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(u64, &mut [u8; SIZE]) + Clone + Send + 'static,
) {
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let answer = answer.clone();
            thread::spawn(move || one(stream, answer));
        }
    });
}

pub(super) const SIZE: usize = 64;

/// On a free port.
pub(super) fn start(
    answer: impl Fn(u64, &mut [u8; SIZE]) + Clone + Send + 'static,
) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    serve(listener, answer);
    Ok(address)
}

/// Until the client ends the connection; a client that resets it has its reasons.
fn one(mut stream: TcpStream, answer: impl Fn(u64, &mut [u8; SIZE])) {
    let mut bytes = [0; SIZE];
    let mut number = 0;
    // Nagle would keep an answer back for the next.
    let mut done = stream.set_nodelay(true);
    while done.is_ok() && stream.read_exact(&mut bytes).is_ok() {
        answer(number, &mut bytes);
        done = stream.write_all(&bytes);
        number += 1;
    }
}
