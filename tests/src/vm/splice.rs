//! Joined connections on another kernel: one that keeps no sum of what is unread.
use super::guest::Guest;
use anyhow::{Context, Result, ensure};
use hopscope_tests::requirement::find_program;
use hopscope_tests::{Requirement, Suite, compile};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Nginx, Vm};
    // Alone 72 s, most of it the verifier's in an emulator; beside others four times as long.
    suite
        .case("vm::connections_are_joined", &[Vm, Gcc, Nginx], joined)
        .watchdog(900);
}

/// The plain server and the client that compares every byte; a stopped and a bursting reader; and a
/// web server, for which FIONREAD is wrong there too.
fn joined() -> Result<()> {
    let mut guest = Guest::new()?;
    for name in ["server", "tester", "stream", "edges"] {
        let source = format!("splice/{name}.c");
        let program = compile("gcc", &[&source], &["-O2", "-static"])?;
        guest.program(&program, &format!("/bin/{name}"))?;
    }
    let nginx = find_program("nginx").context("no nginx")?;
    guest.program(&nginx, "/bin/nginx")?;
    guest.file(
        "/nginx.conf",
        b"pid /tmp/pid; error_log /tmp/errors; user root; events {}\n\
        http { access_log off; server { listen 127.0.0.1:8080; root /tmp; } }\n",
    );
    guest.file("/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n");
    guest.file("/etc/group", b"root:x:0:\n");
    guest.step("check", "hopscope check splice --json");
    guest.step(
        "bytes",
        "mkfifo /tmp/port
        hopscope splice run --blocking --summary /tmp/summary -- sh -c '
          server 127.0.0.1 /tmp/port & read port < /tmp/port
          tester 127.0.0.1 $port 60 20; code=$?; kill $!; wait; exit $code' && cat /tmp/summary",
    );
    guest.step(
        "verified",
        "hopscope splice run --blocking --verify --summary /tmp/verified -- stream bursts 5000000 && cat /tmp/verified",
    );
    // One start for these: most of it is the verifier's, which an emulator makes long.
    guest.step(
        "unread",
        "stream unread
        hopscope -q splice run --blocking -- sh -c '
          stream bursts 20000000 >/dev/null && stream unread && edges pressure 4 forth >/tmp/edges'",
    );
    guest.step("edges", "cat /tmp/edges");
    guest.step(
        "nginx",
        "mkdir -p /var/lib/nginx /var/log/nginx
        head -c 700000 /dev/urandom > /tmp/page
        hopscope splice run --blocking --summary /tmp/web -- sh -c '
          nginx -e /tmp/errors -c /nginx.conf || exit 1
          for n in 1 2 3; do wget -q -O /tmp/got http://127.0.0.1:8080/page && cmp /tmp/got /tmp/page || exit 2; done
          nginx -e /tmp/errors -c /nginx.conf -s stop' && cat /tmp/web",
    );
    let run = guest.run()?;
    let check = run.step("check")?.expect_code(0)?.stdout;
    for line in check.lines() {
        let line: Value = serde_json::from_str(line)?;
        let is_vital = line["splice"]
            .as_str()
            .is_some_and(|so| so.contains("no socket"));
        ensure!(!is_vital || line["state"] == "ok", "{line}");
    }
    let bytes = run.step("bytes")?.expect_code(0)?.stdout;
    let counts: Value = serde_json::from_str(bytes.lines().last().context("no counts")?)?;
    ensure!(counts["connections"] == 60, "{counts}");
    let verified = run.step("verified")?.expect_code(0)?.stdout;
    let counts: Value = serde_json::from_str(verified.lines().last().context("no counts")?)?;
    ensure!(
        counts["verified_directions"] == 2 && counts["verified_bytes"] == 5_000_000,
        "{counts}"
    );
    let unread = run.step("unread")?.expect_code(0)?.stdout;
    let unread: Vec<u64> = unread
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line)?;
            line["unread"].as_u64().context("unread")
        })
        .collect::<Result<_>>()?;
    ensure!(
        unread.len() == 2 && unread[1] <= 2 * unread[0],
        "{unread:?}"
    );
    // Also where the kernel does not say when something comes, and is read.
    let edges = run.step("edges")?.expect_code(0)?.stdout;
    let edges: Value = serde_json::from_str(edges.lines().last().context("nothing")?)?;
    ensure!(edges["first"].as_u64() < edges["read"].as_u64(), "{edges}");
    let web = run.step("nginx")?.expect_code(0)?.stdout;
    let counts: Value = serde_json::from_str(web.lines().last().context("no counts")?)?;
    ensure!(
        counts["plain_refused"] == 3 && counts["ends_joined"] == 0,
        "{counts}"
    );
    Ok(())
}
