//! curl and wrk on the stack, against an nginx of the kernel's.
use super::nginx::{TIMEOUT, requests};
use super::side::{Mode, Side};
use super::web::Site;
use crate::stack::cable::{KERNEL, KERNEL_V6, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx, Openssl, Wrk};
    for mode in Mode::BOTH {
        let needs = &[Netns, Nginx, Curl, Openssl];
        let name = format!("{}_connects_by_http2_with_curl", mode.prefix());
        suite.case(name, needs, move || http2(mode)).in_turn();
        let needs = &[Netns, Nginx, Wrk, Openssl];
        for (name, scheme) in [("wrk", "http"), ("wrk_tls", "https")] {
            let name = format!("{}_connects_with_{name}", mode.prefix());
            let case = suite.case(name, needs, move || wrk(mode, scheme));
            case.in_turn().soak = (mode, scheme) == (Mode::Inline, "https");
        }
    }
    let needs = &[Netns, Nginx, Curl, Openssl];
    suite.case("stack::run_connects_with_curl", needs, curl);
}

/// A server of the kernel's at both its addresses.
fn site() -> Result<(Site, Target)> {
    let more = format!("listen [{KERNEL_V6}]:80;");
    let mut site = Site::listening(KERNEL, &more, "master_process off;")?;
    std::fs::write(files().join("nginx/small"), [b'x'; 600])?;
    let ready = site.ready();
    let server = Target::spawn_with_ready_file(&mut site.command, &ready)?;
    Ok((site, server))
}

fn http2(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let (site, _server) = site()?;
    site.is_right(KERNEL, |words| side.runs(words))?;
    side.ends(400)
}

fn curl() -> Result<()> {
    let side = Side::new(Mode::Inline)?;
    let (site, _server) = site()?;
    let got = files().join("got");
    let to = got.to_str().context("path")?;
    let curl =
        |url: &str| ["/usr/bin/curl", "-sS", "--max-time", "60", "-o", to, url].map(str::to_owned);
    for host in [KERNEL.to_owned(), format!("[{KERNEL_V6}]")] {
        let words = curl(&format!("http://{host}/body"));
        side.runs(&words.each_ref().map(String::as_str))?;
        ensure!(std::fs::read(&got)? == site.bytes, "the body differs");
    }
    // As on the kernel's stack: refused is 7.
    let words = curl(&format!("http://{KERNEL}:81/"));
    run(&mut side.command(&words.each_ref().map(String::as_str)))?.expect_code(7)?;
    side.ends(20)
}

/// Its threads wait in epoll; each connection is used again and again.
fn wrk(mode: Mode, scheme: &str) -> Result<()> {
    let side = Side::new(mode)?;
    let (_site, _server) = site()?;
    let url = format!("{scheme}://{KERNEL}/small");
    let time = counts().pick("1s", "20s");
    let wrk = ["/usr/bin/wrk", "-t2", "-c64", "-d", time, &url];
    let out = side.runs(&[&wrk[..], &TIMEOUT].concat())?;
    requests(&out.stdout)?;
    side.ends(400)
}
