//! A server of our own for one run: a process, so that it shares no lock or allocator with the
//! client whose figures it must not disturb.
use anyhow::Context;
use hopscope_load::connections::serve::Service;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

pub struct LocalServer {
    pub listen: SocketAddr,
    pub stats: SocketAddr,
    child: Child,
}

impl LocalServer {
    pub fn start(transport: Transport, service: Service, seed: u64) -> anyhow::Result<LocalServer> {
        let own = std::env::current_exe().context("cannot tell my own path")?;
        let mut command = Command::new(own);
        let transport = match transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        command.args(["load", transport, "serve", "--listen", "127.0.0.1:0"]);
        command.args(["--stats", "127.0.0.1:0", "--until-stdin-ends", "--json"]);
        let seed = seed.to_string();
        match service {
            Service::Echo => command.args(["--service", "echo"]),
            Service::Respond { request, response } => command
                .args(["--service", "respond", "--request", &request.to_string()])
                .args(["--response", &response.to_string()]),
            Service::Sink { check: None } => command.args(["--service", "sink"]),
            Service::Sink { check: Some(_) } => {
                command.args(["--service", "sink", "--seed", &seed])
            }
            Service::Source { .. } => command.args(["--service", "source", "--seed", &seed]),
        };
        // Its stdin ends with this process, however that ends; then the server does.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is for the client, which still asks this server for its counts.
        command.process_group(0);
        let mut child = command.spawn().context("cannot start the server")?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.as_mut() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let ready: serde_json::Value =
            serde_json::from_str(&line).context("the server did not start")?;
        let address = |key: &str| -> anyhow::Result<SocketAddr> {
            let text = ready[key]
                .as_str()
                .context("the server did not say where")?;
            Ok(text.parse()?)
        };
        let (listen, stats) = (address("listen")?, address("stats")?);
        Ok(LocalServer {
            listen,
            stats,
            child,
        })
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Its summary is of no more use; it has ended or will, its stdin having done so.
        let _ = self.child.wait();
    }
}
