//! A real server: each request's packet with the one request that it began, each response's with the
//! filter that wrote it, in the text, the page and the trace.
use super::{by_packet, perfetto, record, with_data};
use crate::nf::nginx::{Server, children};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{counts, hopscope, scratch};
use std::io::{Read, Write};
use std::net::TcpStream;

const REQUEST: &[u8] = b"GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n";

pub(super) fn run() -> Result<()> {
    let dir = scratch();
    let nginx = Server::start(&dir)?;
    let mut stream = TcpStream::connect(("127.0.0.1", nginx.port))?;
    let whole = request(&mut stream, None)?;
    // Of the two workers, the one that has the connection.
    let workers = children(nginx.target.pid())?;
    let worker = workers.iter().find(|pid| has_connection(**pid));
    let worker = *worker.context("no worker has the connection")?;
    let (recording, file) = record(worker, &["ngx_http_*"], nginx.port, &dir)?;
    let requests = counts().pick(50, 2_000);
    for _ in 0..requests {
        request(&mut stream, Some(whole))?;
    }
    let port = stream.local_addr()?.port();
    recording.stop()?;
    drop(stream);
    nginx.stop(&dir)?;
    let found = by_packet(&file)?;
    found.expect_sound()?;
    let count = |calls: &[String], name: &str| calls.iter().filter(|c| *c == name).count();
    let mut seen = 0;
    for packet in with_data(&found, "source_port", port) {
        let calls = found.calls(packet, "after_receive")?;
        ensure!(
            count(&calls, "ngx_http_process_request") == 1,
            "{calls:?} after {packet}"
        );
        seen += 1;
    }
    ensure!(seen == requests, "{seen} of {requests} requests");
    let mut seen = 0;
    for packet in with_data(&found, "destination_port", port) {
        let id = packet["id"].as_u64().context("id")?;
        let beside = &found.functions[&(id, "before_send".to_owned())];
        let around = beside["around"].to_string();
        ensure!(
            around.contains("ngx_http_write_filter"),
            "{around}: {packet}"
        );
        seen += 1;
    }
    ensure!(seen >= requests, "{seen} packets of {requests} responses");
    page(&file)?;
    flows(&file, requests)
}

/// The length of the answer, which is `expected`.
fn request(stream: &mut TcpStream, expected: Option<usize>) -> Result<usize> {
    stream.write_all(REQUEST)?;
    let (mut answer, mut room) = (Vec::new(), [0; 65_536]);
    loop {
        let len = stream.read(&mut room)?;
        ensure!(len > 0, "nginx closed the connection");
        answer.extend_from_slice(&room[..len]);
        let text = String::from_utf8_lossy(&answer);
        let Some(head) = text.find("\r\n\r\n") else {
            continue;
        };
        let length = text.split("Content-Length: ").nth(1);
        let length: usize = length
            .and_then(|l| l.split("\r\n").next())
            .context("Content-Length")?
            .parse()?;
        if answer.len() >= head + 4 + length {
            ensure!(
                expected.is_none_or(|n| n == answer.len()),
                "{} bytes, not {expected:?}: {text}",
                answer.len()
            );
            return Ok(answer.len());
        }
    }
}

/// Workers hold their listener, and what is open for them: only one holds a connection, too.
fn has_connection(pid: i32) -> bool {
    let sockets = |pid: i32| {
        let links = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let targets = links
            .flatten()
            .filter_map(|l| std::fs::read_link(l.path()).ok());
        targets
            .filter(|t| t.to_string_lossy().starts_with("socket:"))
            .filter_map(|t| {
                let text = t.to_string_lossy().into_owned();
                text.trim_start_matches("socket:[")
                    .trim_end_matches(']')
                    .parse::<u64>()
                    .ok()
            })
            .collect::<Vec<_>>()
    };
    let Ok(table) = std::fs::read_to_string("/proc/net/tcp") else {
        return false;
    };
    // State 01 is established (include/net/tcp_states.h); the inode is the tenth word.
    let mut established = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(3) == Some(&"01")).then(|| words.get(9)?.parse::<u64>().ok())?
    });
    let own = sockets(pid);
    established.any(|inode| own.contains(&inode))
}

/// Both are in the page of calls.
fn page(file: &std::path::Path) -> Result<()> {
    let page = file.with_extension("html");
    let (file, to) = (file.to_str(), page.to_str());
    let (file, to) = (file.context("path")?, to.context("path")?);
    hopscope(&["report", "--html", to, file])?.expect_code(0)?;
    let html = std::fs::read_to_string(&page)?;
    let section = html
        .split("<section id=kernel>")
        .nth(1)
        .context("no section")?;
    let packet = section.split("<details>").nth(1).context("no packet")?;
    ensure!(
        packet.contains("tx.transport") && section.contains("ngx_http_process_request"),
        "no slices, or no functions"
    );
    Ok(())
}

/// Each request's flow goes from its packet to a function of nginx, each response's the other way.
fn flows(file: &std::path::Path, requests: u32) -> Result<()> {
    let trace = perfetto(file)?;
    let flows = trace["flows"].as_array().context("flows")?;
    let (mut to, mut from) = (0, 0);
    for flow in flows {
        let steps = flow.as_array().context("steps")?;
        let is_function = |at: usize| {
            let name = steps.get(at).and_then(|s| s["name"].as_str());
            name.is_some_and(|name| name.contains("ngx_http_"))
        };
        ensure!(steps.len() <= 3, "{flow}");
        to += u32::from(steps.len() == 2 && is_function(1));
        from += u32::from(steps.len() == 2 && is_function(0));
    }
    ensure!(
        to == requests && from >= requests,
        "{to} to functions, {from} from functions, of {requests} requests"
    );
    Ok(())
}
