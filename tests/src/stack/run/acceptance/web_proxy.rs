//! nginx as a client: it is on the stack, and what it serves is of an nginx of the kernel's.
use super::super::running::kernel_has_none;
use super::super::tools::{body, nginx};
use super::haproxy::fetch;
use super::nginx::{TIMEOUT, requests};
use super::side::{Mode, Side, on_the_kernel};
use super::web::{processes, started};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx, Wrk};
    for mode in Mode::BOTH {
        let name = format!("{}_proxies_with_nginx", mode.prefix());
        let case = suite.case(name, &[Netns, Nginx, Curl, Wrk], move || proxies(mode));
        case.in_turn().soak = mode == Mode::Inline;
    }
}

/// Connections to the server behind it are kept, and each of its own.
fn proxies(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let behind = files().join("behind");
    let bytes = body(&behind, counts().pick(300_000, 10_000_000))?;
    std::fs::write(behind.join("small"), [b'x'; 600])?;
    let listen = format!(
        "listen {KERNEL}:80; location /left {{ dav_methods PUT; client_max_body_size 0; }}"
    );
    let mut kernels = nginx(&behind, &listen, "user root; master_process off;")?;
    let _kernels = Target::spawn_with_ready_file(&mut kernels, &behind.join("pid"))?;
    let front = files().join("front");
    let at = format!("{STACK}:8080");
    // What is last in the server's braces ends in those of the servers behind it.
    let listen = format!(
        "listen {STACK}:8080; client_max_body_size 0; proxy_http_version 1.1; proxy_set_header Connection '';\n\
         location / {{ proxy_pass http://behind; }}\n\
         location /closed/ {{ proxy_pass http://{KERNEL}:80/; proxy_set_header Connection close; }} }}\n\
         upstream behind {{ server {KERNEL}:80; keepalive 16;"
    );
    let plain = nginx(&front, &listen, &format!("user root; {}", processes(mode)))?;
    let server = started(&side, &plain, &front)?;
    kernel_has_none(8080)?;
    fetch(&at, &bytes)?;
    let body = behind.join("body").display().to_string();
    let url = format!("http://{at}/left");
    run(&mut on_the_kernel(&[
        "curl", "-sS", "--fail", "-T", &body, &url,
    ]))?
    .expect_code(0)?;
    ensure!(
        std::fs::read(behind.join("left"))? == bytes,
        "what was left differs"
    );
    for path in ["small", "closed/small"] {
        let url = format!("http://{at}/{path}");
        let time = counts().pick("1s", "20s");
        let wrk = ["wrk", "-t1", "-c64", "-d", time, &url];
        let out = run(&mut on_the_kernel(&[&wrk[..], &TIMEOUT].concat()))?;
        requests(&out.expect_code(0)?.stdout)?;
    }
    side.ended(server, Some(Signal::SIGQUIT))?;
    side.ends(1_000)
}
