//! A client: opens connections and sends, receives or requests over each, until it has done as much as it should.
use crate::app::{App, AppCounts, PIECE_BYTES};
use crate::sockets::Sockets;
use crate::{InstanceError, Ns};
use hopscope_load::connections::pattern::Pattern;
use hopscope_openloop::latency::Latency;
use hopscope_stack_engine::{Event, SocketError, SocketKind, SocketOption};
use std::net::SocketAddr;

mod connection;
mod error;
mod exchange;
mod stream;
mod turn;

use connection::{Connection, Stage};
pub use error::ClientError;

/// Against which kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Sends, and reads nothing into what comes back: against discard.
    Send,
    /// Receives until enough: against chargen.
    Receive,
    /// A message, and the same back, over and over.
    Echo,
    /// GET over a connection that is kept, over and over.
    Http,
}

#[derive(Debug, Clone)]
pub struct ClientPlan {
    pub to: SocketAddr,
    pub work: Work,
    pub connections: u32,
    /// Of a message of `Echo`, in bytes.
    pub size: usize,
    /// `Send`, `Receive`: over each connection.
    pub bytes: Option<u64>,
    /// `Echo`, `Http`: over all connections together.
    pub requests: Option<u64>,
    pub duration: Option<Ns>,
    /// A connection over which nothing moves for so long has failed.
    pub timeout: Ns,
    pub seed: u64,
    /// Whether received bytes are compared.
    pub verify: bool,
}

/// What is common to all connections of a client.
struct Shared {
    plan: ClientPlan,
    pattern: Pattern,
    piece: Box<[u8]>,
    request: Vec<u8>,
    counts: AppCounts,
    started: u64,
    latency: Latency,
    /// No new request begins, no more is sent.
    stops: bool,
}

pub struct Client {
    shared: Shared,
    connections: Vec<Connection>,
    open: usize,
    began: Option<Ns>,
    ended: Option<Ns>,
    first_error: Option<ClientError>,
    looks_next: Ns,
}

/// What a client did, and how long it took.
#[derive(Debug, Clone)]
pub struct ClientReport {
    pub counts: AppCounts,
    pub connected: u64,
    /// From the first connection on.
    pub duration: Ns,
    /// From the request to the last byte of its response.
    pub latency: Latency,
    pub first_error: Option<ClientError>,
}

/// How often what nothing reports is looked at: time-outs, and whether all is acknowledged.
const LOOK_EVERY: Ns = Ns::from_ms(5);

impl Client {
    #[must_use]
    pub fn new(plan: ClientPlan) -> Client {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nUser-Agent: hopscope\r\n\r\n",
            plan.to
        );
        Client {
            shared: Shared {
                pattern: Pattern::new(plan.seed, PIECE_BYTES.max(plan.size)),
                piece: vec![0; PIECE_BYTES].into(),
                request: request.into_bytes(),
                counts: AppCounts::default(),
                started: 0,
                latency: Latency::default(),
                stops: false,
                plan,
            },
            connections: Vec::new(),
            open: 0,
            began: None,
            ended: None,
            first_error: None,
            looks_next: Ns(0),
        }
    }

    #[must_use]
    pub fn report(&self, now: Ns) -> ClientReport {
        let began = self.began.unwrap_or(now);
        ClientReport {
            counts: self.shared.counts,
            connected: self.shared.counts.accepted,
            duration: self.ended.unwrap_or(now).since(began),
            latency: self.shared.latency.clone(),
            first_error: self.first_error,
        }
    }

    fn connect(&mut self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError> {
        let to = self.shared.plan.to;
        let failed = |source| InstanceError::Connect { to, source };
        let id = sockets.engine.socket(SocketKind::Tcp, to.is_ipv6());
        let id = id.map_err(failed)?;
        let token = self.connections.len() as u64 + 1;
        let set = sockets.engine.set_token(id, token);
        set.map_err(failed)?;
        let option = SocketOption::NoDelay(self.shared.plan.work != Work::Send);
        let set = sockets.engine.set_option(sockets.now, id, option);
        set.map_err(failed)?;
        match sockets.engine.connect(sockets.now, id, Some(to)) {
            Ok(()) | Err(SocketError::InProgress) => {}
            Err(error) => return Err(failed(error)),
        }
        let n = self.connections.len() as u64;
        self.connections.push(Connection::new(id, n, sockets.now));
        self.open += 1;
        Ok(())
    }

    fn turn(&mut self, sockets: &mut Sockets<'_>, n: usize) {
        let Some(connection) = self.connections.get_mut(n) else {
            return;
        };
        if connection.stage == Stage::Over {
            return;
        }
        let is_first = self.shared.counts.accepted == 0;
        let done = turn::turn(connection, sockets, &mut self.shared);
        if is_first && self.shared.counts.accepted == 1 {
            // What comes before is the handshake's and the neighbour's.
            self.began = Some(sockets.now);
        }
        match done {
            Ok(false) | Err(ClientError::Socket(SocketError::WouldBlock)) => {}
            Ok(true) => self.close(sockets, n, None),
            Err(error) => self.close(sockets, n, Some(error)),
        }
    }

    fn close(&mut self, sockets: &mut Sockets<'_>, n: usize, error: Option<ClientError>) {
        let connection = &mut self.connections[n];
        connection.stage = Stage::Over;
        sockets.close(connection.id);
        self.open -= 1;
        let counts = &mut self.shared.counts;
        counts.ended += u64::from(error.is_none());
        counts.failed += u64::from(error.is_some());
        self.first_error = self.first_error.or(error);
        if self.open == 0 {
            self.ended = Some(sockets.now);
        }
    }

    /// No more is begun; what is under way ends.
    pub fn stop(&mut self, sockets: &mut Sockets<'_>) {
        self.shared.stops = true;
        for n in 0..self.connections.len() {
            self.turn(sockets, n);
        }
    }
}

impl App for Client {
    fn start(&mut self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError> {
        self.began = Some(sockets.now);
        for _ in 0..self.shared.plan.connections {
            self.connect(sockets)?;
        }
        Ok(())
    }

    fn event(&mut self, sockets: &mut Sockets<'_>, event: Event) {
        if let Some(n) = event.token.checked_sub(1) {
            self.turn(sockets, n as usize);
        }
    }

    fn deadline(&self) -> Option<Ns> {
        (self.open > 0).then_some(self.looks_next)
    }

    fn advance(&mut self, sockets: &mut Sockets<'_>) {
        let now = sockets.now;
        if now < self.looks_next {
            return;
        }
        self.looks_next = now + LOOK_EVERY;
        let plan = &self.shared.plan;
        let (timeout, began) = (plan.timeout, self.began.unwrap_or(now));
        let over = plan.duration.is_some_and(|d| now.since(began) >= d);
        if over && !self.shared.stops {
            self.stop(sockets);
        }
        for n in 0..self.connections.len() {
            if self.connections[n].stage == Stage::Draining {
                self.turn(sockets, n);
            }
            let connection = &self.connections[n];
            let silent = now.since(connection.moved) >= timeout;
            if silent && connection.stage != Stage::Over {
                self.close(sockets, n, Some(SocketError::TimedOut.into()));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.began.is_some() && self.open == 0
    }

    fn counts(&self) -> AppCounts {
        self.shared.counts
    }
}
