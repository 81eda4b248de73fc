//! A server's report for its clients: whoever connects to the port for it gets one line of JSON.
use super::{Server, ServerReport};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A client that does not read must not keep the server from others.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers those that wait on a non-blocking listener. One that went away meanwhile gets nothing.
///
/// # Errors
/// Where no connection can be accepted.
pub fn publish(listener: &TcpListener, server: &Server) -> std::io::Result<()> {
    loop {
        let mut client = match listener.accept() {
            Ok((client, _)) => client,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let line = serde_json::to_string(&server.report())?;
        let sent = client
            .set_nonblocking(false)
            .and_then(|()| client.set_write_timeout(Some(PATIENCE)))
            .and_then(|()| writeln!(client, "{line}"));
        // It may have gone; the next one is not concerned.
        drop(sent);
    }
}

/// The report of the server that publishes at `address`.
///
/// # Errors
/// Where it does not answer, or with something else.
pub fn fetch(address: SocketAddr) -> std::io::Result<ServerReport> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
