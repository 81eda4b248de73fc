//! Clients of the control socket that mean no good.
use super::{Client, Scene};
use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const CONNECTIONS: usize = 1_000;

/// Garbage, lines without end, requests whose answers nobody reads, a thousand connections: packets go on, and who
/// asks is answered.
pub(super) fn run() -> Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most.min(8_192), most)?;
    let mut scene = Scene::new(&["--shadows"])?;
    let control = scene.control();
    let over = AtomicBool::new(false);
    let (count, attacks) = std::thread::scope(|scope| -> Result<_> {
        let attack = scope.spawn(|| attack(&control, &over));
        let count = scene.drive("", &mut || Ok(()));
        over.store(true, Ordering::Relaxed);
        let attacks = attack
            .join()
            .map_err(|_| anyhow::anyhow!("the attack panicked"))?;
        Ok((count?, attacks?))
    })?;
    ensure!(attacks >= 1, "nobody attacked while packets went");
    let stat = Client::new(&control)?.ask(&json!({ "do": "stat" }))?;
    ensure!(stat["type"] == "vnet_stat", "{stat}");
    let summary = scene.back_end.stop()?;
    for queue in ["tx", "rx"] {
        super::adds_up(&summary["pairs"][0][queue], count)?;
    }
    let of = |name: &str| summary["control"][name].as_u64().context(name.to_owned());
    ensure!(of("refused")? > 0 && of("displaced")? > 0, "{summary}");
    ensure!(of("connections")? > CONNECTIONS as u64, "{summary}");
    Ok(())
}

/// Goes on until all is `over`, at least once as a whole. Whatever the other end does with it is fair.
fn attack(control: &Path, over: &AtomicBool) -> Result<u64> {
    let mut rounds = 0;
    while rounds == 0 || !over.load(Ordering::Relaxed) {
        let mut silent = Vec::new();
        for n in 0..CONNECTIONS {
            let mut stream = UnixStream::connect(control)?;
            stream.set_nonblocking(true)?;
            match n % 5 {
                0 => drop(stream.write(&[0xff; 100])),
                1 => drop(stream.write(&[b'{'; 10_000])),
                // None of them is ever read.
                2 => drop(stream.write("{\"do\":\"stat\"}\n".repeat(1_000).as_bytes())),
                3 => drop(stream.write(b"{\"do\":\"set\",\"tx_call_policy\":\"soon\"}\n")),
                _ => drop(stream.shutdown(Shutdown::Write)),
            }
            silent.push(stream);
        }
        rounds += 1;
    }
    Ok(rounds)
}
