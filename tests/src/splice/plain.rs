//! Connections that take no part, each counted; and programs that run already.
use super::bytes::SERVE_AND_TEST;
use super::scene::{ANYWAY, AT_ONCE, Done, dir, program, splice, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Target, counts, hopscope, hopscope_bin};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) fn serve_and_test(options: &[&str], connections: &str, at_once: &str) -> Result<Done> {
    let (server, tester) = (program("server")?, program("tester")?);
    let environment = [
        ("DIR", text(dir())?),
        ("SERVER", text(&server)?),
        ("TESTER", text(&tester)?),
        ("LISTEN", "127.0.0.1"),
        ("CONNECT", "127.0.0.1"),
        ("CONNECTIONS", connections),
        ("AT_ONCE", at_once),
        ("SOURCES", "1"),
    ];
    splice(options, SERVE_AND_TEST, &environment)
}

/// Room for ten connections, fifty at once: all bytes are right, and the rest is counted, each connection once.
pub(super) fn full() -> Result<()> {
    let done = serve_and_test(&["--connections", "10"], "400", "50")?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let (joined, full) = (done.count("connections")?, done.count("plain_full")?);
    ensure!(
        joined >= 10
            && full >= 40
            && joined + full == 400
            && done.count("plain_client_outside")? == 0,
        "{}",
        done.summary
    );
    Ok(())
}

/// A server without its client, a client without its server, and another port.
pub(super) fn outside() -> Result<()> {
    let server = program("server")?;
    // A file is there before its contents are, so it gets its name once it has them.
    let script = "mkfifo \"$DIR/port\"\n\"$SERVER\" 127.0.0.1 \"$DIR/port\" & server=$!\n\
        read port < \"$DIR/port\"\necho $port > \"$DIR/part\"\nmv \"$DIR/part\" \"$DIR/known\"\nread line < \"$DIR/over\"\n\
        kill $server; wait $server; exit 0\n";
    let over = dir().join("over");
    command(Command::new("mkfifo").arg(&over))?.expect_code(0)?;
    let summary = dir().join("outer");
    let mut outer = Command::new(hopscope_bin());
    outer
        .args(["-q", "splice", "run", ANYWAY, AT_ONCE, "--summary"])
        .arg(&summary)
        .args(["--", "sh", "-c", script])
        .env("DIR", dir())
        .env("SERVER", &server);
    let outer = Target::spawn_with_ready_file(&mut outer, &dir().join("known"))?;
    let port = port()?;
    let tester = program("tester")?;
    let test = |count: &str| {
        command(Command::new(&tester).args(["127.0.0.1", &port, count, "5"]))?.expect_code(0)
    };
    test("30")?;
    let inner = format!("\"$TESTER\" 127.0.0.1 {port} 20 5");
    let client = splice(&[], &inner, &[("TESTER", text(&tester)?)])?;
    client.expect_code(0)?;
    ensure!(
        client.count("plain_server_outside")? == 20 && client.count("ends_joined")? == 0,
        "{}",
        client.summary
    );
    std::fs::write(&over, "\n")?;
    ensure!(outer.wait()?.success(), "the server's end");
    let text = std::fs::read_to_string(&summary)?;
    let counts: Value = serde_json::from_str(&text)?;
    ensure!(
        counts["plain_client_outside"] == 50 && counts["ends_joined"] == 0,
        "{counts}"
    );
    let other = serve_and_test(&["--port", "1"], "30", "5")?;
    other.expect_code(0)?;
    ensure!(other.count("ends_joined")? == 0, "{}", other.summary);
    Ok(())
}

fn port() -> Result<String> {
    Ok(std::fs::read_to_string(dir().join("known"))?
        .trim()
        .to_owned())
}

/// A server that listened before: `attach` by port, seen by `list` and `stat`, ended by `detach`.
pub(super) fn attached() -> Result<()> {
    let fifo = dir().join("port");
    command(Command::new("mkfifo").arg(&fifo))?.expect_code(0)?;
    let server = Target::spawn_now(Command::new(program("server")?).arg("127.0.0.1").arg(&fifo))?;
    let port = std::fs::read_to_string(&fifo)?.trim().to_owned();
    let ready = dir().join("ready");
    let mut attach = Command::new(hopscope_bin());
    attach
        .args([
            "-q", "splice", "attach", ANYWAY, AT_ONCE, "--json", "--port", &port,
        ])
        .args(["-p", &server.pid().to_string(), "--ready-file"])
        .arg(&ready)
        .stdout(Stdio::piped());
    let attached = Target::spawn_with_ready_file(&mut attach, &ready)?;
    let tester = program("tester")?;
    command(Command::new(&tester).args(["127.0.0.1", &port, "60", "10"]))?.expect_code(0)?;
    let pid = attached.pid().to_string();
    let stat = hopscope(&["splice", "stat", "--of", &pid, "--json"])?.expect_code(0)?;
    let stat: Value = serde_json::from_str(&stat.stdout)?;
    ensure!(
        stat["connections"] == 60 && stat["type"] == "splice_stat" && stat["pid"] == attached.pid(),
        "{stat}"
    );
    let list = hopscope(&["splice", "list", "--json"])?.expect_code(0)?;
    let has = |line: &str| line.contains(&format!("\"pid\":{pid},"));
    ensure!(list.stdout.lines().any(has), "{list:?}");
    hopscope(&["splice", "detach", "--of", &pid])?.expect_code(0)?;
    let out = attached.output()?;
    let last: Value = serde_json::from_slice(&out.stdout).context("the summary")?;
    let ends = ["ends_left", "ends_open"].map(|name| last[name].as_u64().unwrap_or(0));
    ensure!(
        out.status.success() && last["connections"] == 60 && ends.iter().sum::<u64>() == 120,
        "{last}"
    );
    server.signal(Signal::SIGTERM)
}

/// A server that runs, and an accelerator of its port.
struct Served {
    server: Target,
    port: String,
    attached: Target,
}

impl Served {
    fn start(options: &[&str]) -> Result<Served> {
        let fifo = dir().join("port");
        let _ = std::fs::remove_file(&fifo);
        command(Command::new("mkfifo").arg(&fifo))?.expect_code(0)?;
        let server =
            Target::spawn_now(Command::new(program("server")?).arg("127.0.0.1").arg(&fifo))?;
        let port = std::fs::read_to_string(&fifo)?.trim().to_owned();
        let ready = dir().join("ready");
        let _ = std::fs::remove_file(&ready);
        let mut attach = Command::new(hopscope_bin());
        attach
            .args([
                "-q", "splice", "attach", ANYWAY, AT_ONCE, "--json", "--port", &port,
            ])
            .args(options)
            .args(["-p", &server.pid().to_string(), "--ready-file"])
            .arg(&ready)
            .stdout(Stdio::null());
        let attached = Target::spawn_with_ready_file(&mut attach, &ready)?;
        Ok(Served {
            server,
            port,
            attached,
        })
    }

    fn test(&self, connections: u64, at_once: &str, sources: &str) -> Result<()> {
        let connections = connections.to_string();
        let words = ["127.0.0.1", &self.port, &connections, at_once, sources];
        command(Command::new(program("tester")?).args(words))?.expect_code(0)?;
        Ok(())
    }

    /// All of `connections` were joined, and nothing of them is left in any map.
    fn expect_empty(&self, connections: u64) -> Result<Value> {
        let pid = self.attached.pid().to_string();
        let is_empty = |stat: &Value| {
            stat["sockets"] == 0 && stat["sockets_in_map"] == 0 && stat["ends_watched"] == 0
        };
        // The server's ends go a moment after the client has seen the last of them.
        let mut stat = Value::Null;
        for _ in 0..2_000 {
            let said = hopscope(&["splice", "stat", "--of", &pid, "--json"])?.expect_code(0)?;
            stat = serde_json::from_str(&said.stdout)?;
            if is_empty(&stat) {
                break;
            }
        }
        ensure!(
            is_empty(&stat)
                && stat["clients_not_told"] == 0
                && stat["connections"] == connections
                && stat["ends_joined"] == stat["ends_left"],
            "{connections} connections: {stat}"
        );
        Ok(stat)
    }
}

/// Connections opened and closed as fast as it goes: nothing of them stays in a map.
pub(super) fn churn() -> Result<()> {
    let served = Served::start(&[])?;
    let rounds = counts().pick(3, 300);
    for (round, sources) in (0..rounds).zip(["1", "8"].into_iter().cycle()) {
        served.test(1000, "100", sources)?;
        served.expect_empty(1000 * (round + 1))?;
    }
    served.server.signal(Signal::SIGTERM)
}

/// The same without a pause for minutes; then with sums of all bytes, every one of which is verified.
pub(super) fn long_churn() -> Result<()> {
    let minutes = Duration::from_secs(counts().pick(3, 300));
    for (options, duration) in [(&[] as &[_], minutes), (&["--verify"], minutes / 3)] {
        let served = Served::start(options)?;
        let (begun, mut connections) = (Instant::now(), 0);
        while begun.elapsed() < duration {
            let more = counts().pick(2_000, 20_000);
            served.test(more, "500", "8")?;
            connections += more;
        }
        let stat = served.expect_empty(connections)?;
        let verified = match options.is_empty() {
            true => 0,
            false => 2 * connections,
        };
        ensure!(
            stat["verified_directions"] == verified,
            "{connections} connections: {stat}"
        );
        eprintln!("{connections} connections {options:?}");
        served.server.signal(Signal::SIGTERM)?;
    }
    Ok(())
}

/// The same as in the file, and nothing of it among what the command writes.
pub(super) fn json() -> Result<()> {
    let done = splice(&["--json"], "echo of the command", &[])?;
    ensure!(
        done.output.stdout == "of the command\n",
        "{:?}",
        done.output
    );
    let last = done.output.stderr.lines().last().context("nothing said")?;
    let said: Value = serde_json::from_str(last).with_context(|| last.to_owned())?;
    ensure!(said == done.summary, "{said}");
    Ok(())
}
