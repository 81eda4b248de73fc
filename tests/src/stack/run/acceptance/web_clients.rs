//! curl and wrk on the stack, against an nginx of the kernel's.
use super::side::{Mode, Side};
use super::web::Site;
use crate::stack::cable::{KERNEL, files};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx, Openssl, Wrk};
    for mode in Mode::BOTH {
        let name = format!("{}_connects_by_http2_with_curl", mode.prefix());
        let needs = &[Netns, Nginx, Curl, Openssl];
        suite.case(name, needs, move || curl(mode)).in_turn();
    }
    let needs = &[Netns, Nginx, Wrk, Openssl];
    for (name, scheme) in [("wrk", "http"), ("wrk_tls", "https")] {
        let name = format!("stack::pipeline_connects_with_{name}");
        suite.case(name, needs, move || wrk(scheme)).in_turn();
    }
}

fn curl(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let mut site = Site::at(KERNEL, "master_process off;")?;
    let ready = site.ready();
    let _server = Target::spawn_with_ready_file(&mut site.command, &ready)?;
    site.is_right(KERNEL, |words| side.runs(words))?;
    side.ends(400)
}

/// Its threads wait in epoll; each connection is used again and again.
fn wrk(scheme: &str) -> Result<()> {
    let side = Side::new(Mode::Pipeline)?;
    let mut site = Site::at(KERNEL, "master_process off;")?;
    std::fs::write(files().join("nginx/small"), [b'x'; 600])?;
    let ready = site.ready();
    let _server = Target::spawn_with_ready_file(&mut site.command, &ready)?;
    let url = format!("{scheme}://{KERNEL}/small");
    let time = counts().pick("1s", "20s");
    let out = side.runs(&["/usr/bin/wrk", "-t2", "-c64", "-d", time, &url])?;
    ensure!(!out.stdout.contains("Socket errors"), "{}", out.stdout);
    ensure!(!out.stdout.contains("Non-2xx"), "{}", out.stdout);
    side.ends(400)
}
