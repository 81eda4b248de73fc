//! Clients that everybody has, on the stack: curl, wrk, openssl, iperf3.
use super::running::{cable, frames, left_nothing, on_the_stack};
use crate::stack::cable::{KERNEL, KERNEL_V6, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx, Wrk};
    suite.case("stack::run_connects_with_curl", &[Netns, Curl, Nginx], curl);
    suite.case("stack::run_connects_with_wrk", &[Netns, Wrk, Nginx], wrk);
}

/// On the kernel's stack, with one file.
pub(super) fn nginx(folder: &Path, listen: &str, more: &str) -> Result<Command> {
    std::fs::create_dir_all(folder)?;
    let shown = folder.display();
    let config = folder.join("nginx.conf");
    let text = format!(
        "daemon off; pid {shown}/pid; error_log {shown}/error.log; {more}\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 1000000; root {shown}; client_body_temp_path {shown}/t1; proxy_temp_path {shown}/t2;\n\
         fastcgi_temp_path {shown}/t3; uwsgi_temp_path {shown}/t4; scgi_temp_path {shown}/t5;\n\
         server {{ {listen} }} }}\n"
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new("nginx");
    command
        .arg("-c")
        .arg(config)
        .arg("-e")
        .arg(folder.join("error.log"));
    command.stdin(Stdio::null());
    Ok(command)
}

/// Bytes that no compression and no repetition makes up for.
pub(super) fn body(folder: &Path, len: usize) -> Result<Vec<u8>> {
    let mut state = 1_u64;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(len)
    .collect();
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("body"), &bytes)?;
    Ok(bytes)
}

fn kernels_nginx() -> Result<(Target, Vec<u8>)> {
    let folder = files().join("nginx");
    let bytes = body(&folder, counts().pick(5_000_000, 100_000_000))?;
    let listen = format!("listen {KERNEL}:80; listen [{KERNEL_V6}]:80;");
    let mut command = nginx(&folder, &listen, "master_process off;")?;
    let server = Target::spawn_with_ready_file(&mut command, &folder.join("pid"))?;
    Ok((server, bytes))
}

fn curl() -> Result<()> {
    cable()?;
    let (_server, bytes) = kernels_nginx()?;
    for host in [KERNEL.to_owned(), format!("[{KERNEL_V6}]")] {
        let before = frames()?;
        let got = files().join("got");
        let url = format!("http://{host}/body");
        let words = [
            "/usr/bin/curl",
            "-sS",
            "--max-time",
            "60",
            "-o",
            got.to_str().context("path")?,
            &url,
        ];
        let out = run(&mut on_the_stack(&["--trace"], &words))?;
        ensure!(out.code == Some(0), "{}", out.stderr);
        ensure!(std::fs::read(&got)? == bytes, "the body differs");
        left_nothing(&out.stderr)?;
        ensure!(frames()? > before + 10, "not over the cable");
    }
    // As on the kernel's stack: refused is 7.
    let refused = format!("http://{KERNEL}:81/");
    let words = ["/usr/bin/curl", "-sS", "--max-time", "60", &refused];
    let out = run(&mut on_the_stack(&[], &words))?;
    ensure!(out.code == Some(7), "{:?}: {}", out.code, out.stderr);
    Ok(())
}

fn wrk() -> Result<()> {
    cable()?;
    let (_server, _) = kernels_nginx()?;
    let folder = files().join("nginx");
    std::fs::write(folder.join("small"), [b'x'; 600])?;
    let url = format!("http://{KERNEL}/small");
    let words = [
        "/usr/bin/wrk",
        "-t2",
        "-c64",
        "-d",
        counts().pick("1s", "20s"),
        &url,
    ];
    let before = frames()?;
    let out = run(&mut on_the_stack(&[], &words))?;
    ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
    ensure!(!out.stdout.contains("Socket errors"), "{}", out.stdout);
    ensure!(!out.stdout.contains("Non-2xx"), "{}", out.stdout);
    ensure!(
        frames()? > before + 100,
        "not over the cable: {}",
        out.stdout
    );
    Ok(())
}
