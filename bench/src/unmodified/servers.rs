//! The servers that are run, with the same words each way.
use super::Bench;
use super::ways::{Program, Way};
use crate::error::{Error, Result};
use std::fs;
use std::path::Path;

pub(super) const BODY_BYTES: usize = 600;

/// The server in C: one thread on epoll.
pub(super) fn in_c(bench: &Bench<'_, '_>, way: Way) -> Program {
    let how = if way.spins() { "spin" } else { "sleep" };
    Program {
        name: "the C server",
        words: vec![
            bench.http.clone().into(),
            "80".into(),
            BODY_BYTES.to_string().into(),
            how.into(),
        ],
        pid_file: None,
        port: "80",
    }
}

/// nginx with one worker, which sends a file. Connections that all open at once are all accepted at once: else it is one a turn, and
/// the last ones wait for seconds.
pub(super) fn nginx(bench: &Bench<'_, '_>) -> Result<Program> {
    let dir = bench.files.join("nginx");
    fs::create_dir_all(dir.join("www")).map_err(Error::file("create", &dir))?;
    let write = |file: &Path, text: &str| fs::write(file, text).map_err(Error::file("write", file));
    write(&dir.join("www/index.html"), &"x".repeat(BODY_BYTES))?;
    let (at, config) = (dir.display(), dir.join("nginx.conf"));
    let text = format!(
        "user root; daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log;\n\
         events {{ worker_connections 16384; multi_accept on; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 1000000000;\n\
         client_body_temp_path {at}/tmp1; proxy_temp_path {at}/tmp2; fastcgi_temp_path {at}/tmp3;\n\
         uwsgi_temp_path {at}/tmp4; scgi_temp_path {at}/tmp5;\n\
         server {{ listen 80 backlog=4096; root {at}/www; }} }}\n"
    );
    write(&config, &text)?;
    Ok(Program {
        name: "nginx",
        words: vec!["nginx".into(), "-c".into(), config.into()],
        pid_file: Some(dir.join("pid")),
        port: "80",
    })
}

/// redis that saves nothing.
pub(super) fn redis(bench: &Bench<'_, '_>) -> Program {
    let pid_file = bench.files.join("redis.pid");
    let mut words: Vec<std::ffi::OsString> = [
        "redis-server",
        "--port",
        "6379",
        "--bind",
        "0.0.0.0",
        "--protected-mode",
        "no",
        "--save",
        "",
        "--appendonly",
        "no",
        "--pidfile",
    ]
    .map(Into::into)
    .into();
    words.push(pid_file.clone().into());
    Program {
        name: "redis-server",
        words,
        pid_file: Some(pid_file),
        port: "6379",
    }
}

/// iperf3's server.
pub(super) fn iperf3(bench: &Bench<'_, '_>) -> Program {
    let pid_file = bench.files.join("iperf3.pid");
    Program {
        name: "iperf3",
        words: vec![
            "iperf3".into(),
            "-s".into(),
            "-p".into(),
            "5201".into(),
            "-I".into(),
            pid_file.clone().into(),
        ],
        pid_file: Some(pid_file),
        port: "5201",
    }
}
