//! Programs as they are, behind it.
use super::ENGINES;
use super::proxy::{Proxy, moved};
use crate::splice_echo::network;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    const NEEDS: &[Requirement] = &[
        Requirement::Root,
        Requirement::Netns,
        Requirement::SliceHooks,
        Requirement::Redis,
    ];
    for engine in ENGINES {
        let name = format!("splice_proxy::redis_behind_it::{engine}");
        suite.case(name, NEEDS, move || redis(engine));
    }
}

struct Redis(Child);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// It says on stdout when it takes connections.
fn start(port: u16) -> Result<Redis> {
    let mut child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no", "--loglevel", "notice"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take();
    let redis = Redis(child);
    let stdout = stdout.ok_or_else(|| anyhow::anyhow!("no stdout"))?;
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
    let ready = lines.any(|line| line.is_ok_and(|line| line.contains("Ready to accept")));
    ensure!(ready, "redis did not start");
    // Nobody reads on: what it says after that is little.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(redis)
}

/// A large value comes back as it was, and its own benchmark ends without an error.
fn redis(engine: &str) -> Result<()> {
    network::own()?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _redis = start(port)?;
    let proxy = Proxy::start(engine, ([127, 0, 0, 1], port).into(), &[])?;
    let script = r#"
head -c 3000000 /dev/urandom | base64 -w 0 > "$DIR/value"
redis-cli -p $PORT -x set key < "$DIR/value" > /dev/null
redis-cli -p $PORT get key | head -c -1 | cmp - "$DIR/value" || exit 1
redis-benchmark -p $PORT -q -t ping,set,get,lrange_100 -c 50 -n $REQUESTS || exit 2
exec redis-benchmark -p $PORT -q -t set,get -c 20 -P 16 -d 2000 -n $REQUESTS
"#;
    let out = run(Command::new("sh")
        .args(["-c", script])
        .env("DIR", hopscope_tests::scratch())
        .env("PORT", proxy.address.port().to_string())
        .env("REQUESTS", counts().pick("5000", "200000")))?;
    let out = out.expect_code(0)?;
    ensure!(
        out.stdout.contains("requests per second") && !out.stdout.contains("rror"),
        "{out:?}"
    );
    let summary = proxy.finish()?;
    let (user, kernel) = moved(&summary, "down")?;
    let by_engine = if engine == "kernel" { kernel } else { user };
    ensure!(by_engine > 10_000_000, "{summary}");
    Ok(())
}
