//! Two pairs of network namespaces with the same addresses, and in each the same connections.
use super::bytes::Cable;
use super::scene::{dir, program, splice, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::counts;
use serde_json::Value;

/// The second clients connect while the first ones' servers are not established: each name is that of
/// two connections that wait.
const SCRIPT: &str = r#"
for pair in 1 2; do mkfifo "$DIR/port$pair"; done
$NEAR1 "$SERVER" 10.98.0.2 "$DIR/port1" 7777 & one=$!
$NEAR2 "$SERVER" 10.98.0.2 "$DIR/port2" 7777 & two=$!
read port < "$DIR/port1"; read port < "$DIR/port2"
$FAR2 "$TWINS" 10.98.0.2 7777 "$CONNECTIONS" 2 "$DIR" & second=$!
$FAR1 "$TWINS" 10.98.0.2 7777 "$CONNECTIONS" 1 "$DIR"; code=$?
wait $second; code=$((code + $?))
kill $one $two; wait $one $two
exit $code
"#;

/// Each is joined with its own other end, or with none; every byte is right.
pub(super) fn run() -> Result<()> {
    let (first, second) = (Cable::new("a")?, Cable::new("b")?);
    let (server, twins) = (program("server")?, program("twins")?);
    let connections = counts().pick(200u64, 5_000);
    let environment = [
        ("DIR", text(dir())?),
        ("SERVER", text(&server)?),
        ("TWINS", text(&twins)?),
        ("CONNECTIONS", &connections.to_string()),
        ("NEAR1", &first.enter("s")),
        ("NEAR2", &second.enter("s")),
        ("FAR1", &first.enter("c")),
        ("FAR2", &second.enter("c")),
    ];
    let done = splice(&["--verify"], SCRIPT, &environment)?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let mut bytes = 0;
    let mut pairs = 0;
    for line in done.output.stdout.lines() {
        let said: Value = serde_json::from_str(line)?;
        ensure!(said["connections"].as_u64() == Some(connections), "{said}");
        bytes += said["bytes"].as_u64().context("bytes")?;
        pairs += 1;
    }
    // No client asked before another one of its name had its answer: all of them join.
    ensure!(
        pairs == 2
            && done.count("connections")? == 2 * connections
            && done.count("plain_client_outside")? == 0
            && done.count("direct_bytes")? + done.count("tcp_bytes")? == 2 * bytes,
        "{bytes} {}",
        done.summary
    );
    done.expect_verified(2 * bytes)
}
