//! `record --with-slices`: the functions beside each packet are those that made it, and handled it.
use crate::recording::Recording;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::paths::{programs, readers_python};
use hopscope_tests::{
    Requirement, Suite, Target, compile_c, counts, hopscope, hopscope_bin, repository, scratch,
};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Gcc, Netns, Nginx, Readers, Root, SliceHooks};
    let needs = &[Root, Netns, Fsgsbase, Gcc, SliceHooks];
    suite
        .case("one_timeline::functions_are_of_their_packet", needs, truth)
        .alone();
    let needs = &[Root, Netns, Fsgsbase, SliceHooks, Nginx, Readers];
    suite
        .case("one_timeline::nginx_by_packet", needs, nginx::run)
        .alone();
}

mod nginx;

/// The recording's file, and the command that began it.
fn record(pid: i32, functions: &[&str], port: u16, dir: &Path) -> Result<(Recording, PathBuf)> {
    let file = dir.join("both.hop");
    let mut command = Command::new(hopscope_bin());
    let (pid, slices) = (pid.to_string(), format!("tcp port {port}"));
    command.args(["record", "--json", "-p", &pid, "--max-overhead", "1e9"]);
    command.args(["--with-slices", &slices, "-o"]).arg(&file);
    for function in functions {
        command.args(["-f", function]);
    }
    Ok((Recording::start_command(command, &file)?, file))
}

/// `report --by packet`: packets, the functions of each side of them, and how well they fit.
struct ByPacket {
    packets: Vec<Value>,
    functions: HashMap<(u64, String), Value>,
    quality: Value,
}

fn by_packet(file: &Path) -> Result<ByPacket> {
    let file = file.to_str().context("path")?;
    let words = ["report", file, "--by", "packet", "--json", "-n", "1000000"];
    let out = hopscope(&words)?.expect_code(0)?;
    let mut found = ByPacket {
        packets: Vec::new(),
        functions: HashMap::new(),
        quality: Value::Null,
    };
    for line in out.stdout.lines() {
        let value: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        match value["type"].as_str() {
            Some("slice") => found.packets.push(value),
            Some("packet_functions") => {
                let packet = value["packet"].as_u64().context("packet")?;
                let side = value["side"].as_str().context("side")?.to_owned();
                found.functions.insert((packet, side), value);
            }
            Some("one_timeline") => found.quality = value,
            other => anyhow::bail!("a line of type {other:?}"),
        }
    }
    found.packets.sort_by_key(|p| p["monotonic_ns"].as_u64());
    Ok(found)
}

impl ByPacket {
    /// Names of what was called beside the packet, without the module.
    fn calls(&self, packet: &Value, side: &str) -> Result<Vec<String>> {
        let id = packet["id"].as_u64().context("id")?;
        let beside = self.functions.get(&(id, side.to_owned()));
        let beside = beside.with_context(|| format!("no functions of {side} of {packet}"))?;
        let calls = beside["calls"].as_array().context("calls")?;
        let names = calls.iter().filter_map(|c| c["function"].as_str());
        let short = names.map(|name| name.split_once('!').map_or(name, |(_, name)| name));
        Ok(short.map(str::to_owned).collect())
    }

    fn expect_sound(&self) -> Result<()> {
        for field in ["crossing", "beyond", "other_bytes", "no_return", "no_entry"] {
            ensure!(self.quality[field] == 0, "{field}: {}", self.quality);
        }
        let error = self.quality["clock_error_ns"].as_u64();
        ensure!(error.is_some(), "{}", self.quality);
        Ok(())
    }
}

/// What a client writes in one go, and how many answers it waits for afterwards.
const STEPS: [(&[&str], usize); 4] = [
    (&["LINE"], 1),
    (&["LINE", "LINE"], 2),
    (&["PART"], 0),
    (&["REST"], 1),
];

/// Bytes of a connection's stream that were sent as one, with the numbers of the lines that end there.
struct Sent {
    from: usize,
    to: usize,
    lines: Vec<u64>,
}

struct Client {
    stream: TcpStream,
    sent: Vec<Sent>,
    next: u64,
    at: usize,
    rest: String,
}

impl Client {
    fn step(&mut self, (parts, answers): (&[&str], usize)) -> Result<()> {
        let (mut text, mut lines) = (String::new(), Vec::new());
        for part in parts {
            let number = self.next;
            match *part {
                "LINE" => text += &format!("{number}\n"),
                "PART" => {
                    let whole = format!("{:020}\n", number);
                    let (now, later) = whole.split_at(7);
                    text += now;
                    self.rest = later.to_owned();
                }
                _ => text += &std::mem::take(&mut self.rest),
            }
            if *part != "PART" {
                lines.push(number);
                // Neighbours differ in what handles them, connections in where they begin.
                self.next += 3;
            }
        }
        self.stream.write_all(text.as_bytes())?;
        let from = self.at;
        self.at += text.len();
        self.sent.push(Sent {
            from,
            to: self.at,
            lines,
        });
        let (mut seen, mut byte) = (0, [0]);
        while seen < answers {
            self.stream.read_exact(&mut byte)?;
            seen += usize::from(byte[0] == b'\n');
        }
        Ok(())
    }
}

fn truth() -> Result<()> {
    const CONNECTIONS: usize = 3;
    let program = compile_c(&["slice/answers.c"], &["-O2", "-lpthread"])?;
    let dir = scratch();
    let ready = dir.join("server.ready");
    let mut server = Command::new(program);
    server
        .arg(CONNECTIONS.to_string())
        .env("READY_FILE", &ready);
    let server = Target::spawn_with_ready_file(&mut server, &ready)?;
    let port: u16 = std::fs::read_to_string(&ready)?.trim().parse()?;
    let functions = ["handler_*", "answer", "take"];
    let (recording, file) = record(server.pid(), &functions, port, &dir)?;
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        clients.push(Client {
            stream,
            sent: Vec::new(),
            next: number as u64,
            at: 0,
            rest: String::new(),
        });
    }
    for _ in 0..counts().pick(50, 5_000) {
        for step in STEPS {
            for client in &mut clients {
                client.step(step)?;
            }
        }
    }
    let ports: Vec<u16> = clients
        .iter()
        .map(|c| Ok(c.stream.local_addr()?.port()))
        .collect::<Result<_>>()?;
    let sent: Vec<Vec<Sent>> = clients.into_iter().map(|c| c.sent).collect();
    let summary = recording.stop()?;
    ensure!(server.wait()?.success(), "the server got a wrong line");
    ensure!(
        summary["slices"]["failed"].is_null(),
        "{}",
        summary["slices"]
    );
    compares_with_slices_alone(&file)?;
    let found = by_packet(&file)?;
    found.expect_sound()?;
    for (port, sent) in ports.iter().zip(&sent) {
        requests(&found, *port, sent)?;
        answers(&found, *port, sent).with_context(|| summary["slices"].to_string())?;
    }
    Ok(())
}

/// Without those that TCP sent again: on loopback, because its first was acknowledged late.
/// Its slices with those of a recording that has no calls.
fn compares_with_slices_alone(both: &Path) -> Result<()> {
    let slices = repository().join("measure/trace/tests/golden/v1.3-slices.hop");
    let words = [
        "diff",
        both.to_str().context("path")?,
        slices.to_str().context("path")?,
    ];
    let out = hopscope(&words)?.expect_code(0)?;
    ensure!(out.stdout.contains("  tx.call"), "{}", out.stdout);
    Ok(())
}

fn with_data<'a>(found: &'a ByPacket, end: &'a str, port: u16) -> impl Iterator<Item = &'a Value> {
    let is_again = |p: &Value| p["flags"].to_string().contains("retransmit");
    let has_data = |p: &Value| p["length"].as_u64().is_some_and(|n| n > 0);
    let is_its = move |p: &&Value| p[end] == port && has_data(p) && !is_again(p);
    found.packets.iter().filter(is_its)
}

fn handlers(calls: &[String]) -> Vec<&str> {
    let names = calls.iter().map(String::as_str);
    names.filter(|name| name.starts_with("handler_")).collect()
}

fn handler(line: u64) -> String {
    format!("handler_{}", line % 5)
}

/// Every packet with data was read, and beside it are the handlers of the lines that it completed.
fn requests(found: &ByPacket, port: u16, sent: &[Sent]) -> Result<()> {
    let mut at = 0;
    let mut packets = with_data(found, "source_port", port).peekable();
    for expected in sent {
        ensure!(expected.from == at, "bytes {at} of port {port} are missing");
        let packet = packets.next().context("fewer packets than writes")?;
        at += packet["length"].as_u64().context("length")? as usize;
        ensure!(at == expected.to, "one write in several packets: {packet}");
        let calls = found.calls(packet, "after_receive")?;
        let mut lines: Vec<String> = expected.lines.iter().map(|n| handler(*n)).collect();
        // A piece and its rest may be read by one call: then both have what that did.
        if expected.lines.is_empty() && !handlers(&calls).is_empty() {
            let rest = sent.iter().find(|s| s.from == expected.to);
            let rest = rest.context("a piece without a rest")?;
            lines = rest.lines.iter().map(|n| handler(*n)).collect();
            let next = packets.peek().context("a piece without a rest")?;
            ensure!(
                packet["call_returned"] == next["call_returned"],
                "handled before it was whole: {packet}"
            );
        }
        // The second of two lines is handled after the first was answered: in the next interval.
        lines.truncate(1);
        ensure!(
            handlers(&calls) == lines,
            "{calls:?}, not {lines:?}: {packet}"
        );
        border(found, packet, "after_receive")?;
    }
    ensure!(packets.next().is_none(), "more packets than writes");
    Ok(())
}

/// Each answer's packet comes from the handler of its line.
fn answers(found: &ByPacket, port: u16, sent: &[Sent]) -> Result<()> {
    let lines: Vec<u64> = sent.iter().flat_map(|s| s.lines.clone()).collect();
    let packets: Vec<&Value> = with_data(found, "destination_port", port).collect();
    ensure!(
        packets.len() == lines.len(),
        "{} answers of {}",
        packets.len(),
        lines.len()
    );
    for (packet, line) in packets.iter().zip(&lines) {
        let calls = found.calls(packet, "before_send")?;
        ensure!(
            handlers(&calls) == [handler(*line)],
            "{calls:?} before the answer to {line}: {packet}"
        );
        border(found, packet, "before_send")?;
    }
    Ok(())
}

/// It was measured, and what an empty one reads is known.
fn border(found: &ByPacket, packet: &Value, side: &str) -> Result<()> {
    let id = packet["id"].as_u64().context("id")?;
    let border = &found.functions[&(id, side.to_owned())]["border"];
    let number = |field: &str| border[field].as_u64();
    let (raw, taken) = (number("raw_ns"), number("correction_ns"));
    ensure!(
        raw.is_some() && taken.is_some_and(|ns| ns > 0),
        "{side} of {packet}: {border}"
    );
    Ok(())
}

/// The trace as Perfetto's own messages have it.
fn perfetto(file: &Path) -> Result<Value> {
    let trace = file.with_extension("perfetto");
    let (file, to) = (file.to_str(), trace.to_str());
    let (file, to) = (file.context("path")?, to.context("path")?);
    hopscope(&["export", "--format", "perfetto", "-o", to, file])?.expect_code(0)?;
    let reader = programs().join("readers/perfetto_slices.py");
    let out = run(Command::new(readers_python()).arg(reader).arg(&trace))?.expect_code(0)?;
    Ok(serde_json::from_str(&out.stdout)?)
}
