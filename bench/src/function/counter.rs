//! How many packets a network function has handled so far, from its own counters.
use crate::error::{Error, Result};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr};
use nix::sys::socket::{connect, recv, send, socket};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::ChildStdout;

#[derive(Debug)]
pub(crate) enum Counter {
    /// SIGUSR1 makes it print a line.
    Lines {
        pid: i32,
        answers: BufReader<ChildStdout>,
    },
    /// DPDK's telemetry socket (prog_guide, telemetry library): one datagram there, one back.
    Telemetry { socket: OwnedFd, question: String },
}

impl Counter {
    /// Packets sent by `port` of the DPDK program with the run-time directory `directory`.
    pub(crate) fn telemetry(directory: &Path, port: u32) -> Result<Counter> {
        let failed = |source| Error::System {
            doing: "use the telemetry socket of the DPDK program",
            source,
        };
        let socket = socket(
            AddressFamily::Unix,
            SockType::SeqPacket,
            SockFlag::SOCK_CLOEXEC,
            None,
        )
        .map_err(failed)?;
        let address = UnixAddr::new(&directory.join("dpdk_telemetry.v2")).map_err(failed)?;
        connect(socket.as_raw_fd(), &address).map_err(failed)?;
        let mut banner = [0; 4096];
        recv(socket.as_raw_fd(), &mut banner, MsgFlags::empty()).map_err(failed)?;
        let question = format!("/ethdev/stats,{port}");
        Ok(Counter::Telemetry { socket, question })
    }

    pub(crate) fn packets(&mut self) -> Result<u64> {
        let answer = match self {
            Counter::Lines { pid, answers } => {
                kill(Pid::from_raw(*pid), Signal::SIGUSR1).map_err(|source| Error::System {
                    doing: "ask the network function for its counters",
                    source,
                })?;
                let mut line = String::new();
                let read = answers.read_line(&mut line);
                read.map_err(Error::file("read from", "the network function"))?;
                line
            }
            Counter::Telemetry { socket, question } => {
                let failed = |source| Error::System {
                    doing: "ask the DPDK program for its counters",
                    source,
                };
                let (fd, mut answer) = (socket.as_raw_fd(), [0; 16384]);
                send(fd, question.as_bytes(), MsgFlags::empty()).map_err(failed)?;
                let n = recv(fd, &mut answer, MsgFlags::empty()).map_err(failed)?;
                String::from_utf8_lossy(&answer[..n]).into_owned()
            }
        };
        let json: Value = serde_json::from_str(&answer).unwrap_or_default();
        json.get("packets")
            .or_else(|| json.get("/ethdev/stats")?.get("opackets"))
            .and_then(Value::as_u64)
            .ok_or_else(|| Error::Answer {
                asked: "how many packets?".into(),
                answer,
            })
    }
}
