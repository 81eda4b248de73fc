//! Two ends of a redirected connection, for one case.
use super::{TrialError, TrialResult};
use crate::programs::{Accelerator, Count};
use std::cell::RefCell;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A case that waits longer hangs.
pub(super) const PATIENCE: Duration = Duration::from_millis(400);
/// Joined before TCP is forced, for the cases about bytes that came by TCP.
const PREPARED: usize = 4;

pub(super) struct Place {
    v4: TcpListener,
    v6: Option<TcpListener>,
    /// Takes no part.
    plain: TcpListener,
    prepared: RefCell<Vec<Pair>>,
}

pub(super) struct Pair {
    pub client: TcpStream,
    pub server: TcpStream,
}

impl Place {
    pub(super) fn new() -> io::Result<Place> {
        Ok(Place {
            v4: TcpListener::bind("127.0.0.1:0")?,
            // Where IPv6 is switched off there is nothing to try.
            v6: TcpListener::bind("[::1]:0").ok(),
            plain: TcpListener::bind("127.0.0.1:0")?,
            prepared: RefCell::new(Vec::new()),
        })
    }

    pub(super) fn ports(&self) -> Vec<u16> {
        let listeners = [Some(&self.v4), self.v6.as_ref()];
        let addresses = listeners.into_iter().flatten().map(TcpListener::local_addr);
        addresses.flatten().map(|address| address.port()).collect()
    }

    pub(super) fn listener(&self) -> &TcpListener {
        &self.v4
    }

    pub(super) fn listener_v6(&self) -> Option<&TcpListener> {
        self.v6.as_ref()
    }

    pub(super) fn plain(&self) -> io::Result<Pair> {
        pair(&self.plain)
    }

    /// Joins a few connections, and has every message take TCP from now on.
    pub(super) fn prepare(&self, accelerator: &Accelerator) -> Result<(), TrialError> {
        for _ in 0..PREPARED {
            let joined = joined(&self.v4, accelerator);
            self.prepared.borrow_mut().extend(joined);
        }
        Ok(accelerator.stop()?)
    }

    pub(super) fn prepared(&self) -> Result<Pair, TrialResult> {
        let pair = self.prepared.borrow_mut().pop();
        pair.ok_or(TrialResult::Unknown("no connection was accelerated".into()))
    }
}

pub(super) fn pair(listener: &TcpListener) -> io::Result<Pair> {
    let client = connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    fit(&server)?;
    Ok(Pair { client, server })
}

pub(super) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let client = TcpStream::connect(to)?;
    fit(&client)?;
    Ok(client)
}

pub(super) fn fit(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// A connection with both ends in the sockmap, or why there is none.
pub(super) fn joined(
    listener: &TcpListener,
    accelerator: &Accelerator,
) -> Result<Pair, TrialResult> {
    let before = connections(accelerator)?;
    let pair = pair(listener).map_err(|error| TrialResult::Unknown(error.to_string()))?;
    if connections(accelerator)? > before {
        Ok(pair)
    } else {
        Err(TrialResult::Broken(
            "the two ends were not accelerated".into(),
        ))
    }
}

fn connections(accelerator: &Accelerator) -> Result<u64, TrialResult> {
    count(accelerator, Count::Connections)
}

pub(super) fn count(accelerator: &Accelerator, which: Count) -> Result<u64, TrialResult> {
    let counts = accelerator.counts();
    let counts = counts.map_err(|error| TrialResult::Unknown(error.to_string()))?;
    Ok(counts.get(which))
}
