//! One thread waits for bytes, another one sends: where the kernel tells the first one EAGAIN, such a
//! program is found, said, and left out from then on.
use super::scene::{ANYWAY, AT_ONCE, Done, dir, program, text};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{counts, hopscope, hopscope_bin};
use serde_json::Value;
use std::process::Command;

/// Two connections of one server, the second one after the first one was noticed. The client is another
/// program: it does nothing of the kind.
const SCRIPT: &str = r#"
cp "$PROGRAM" "$DIR/client"; cp "$PROGRAM" "$DIR/sharing"
mkfifo "$DIR/lines" "$DIR/said"
"$DIR/sharing" serve $BYTES < "$DIR/lines" > "$DIR/said" & server=$!
exec 3> "$DIR/lines" 4< "$DIR/said"
read port <&4
for turn in 1 2; do
    echo >&3
    "$DIR/client" read $port $BYTES || exit 1
    read line <&4; echo "$line"
    [ -z "$EXPECTED" ] || timeout 60 sh -c 'until grep -q "$EXPECTED" "$DIR/words"; do :; done' || exit 1
done
exec 3>&-
wait $server
"#;

/// One run of 25 had no failed recv.
const TIMES: usize = 10;

fn two_connections(
    expected: &str,
    bytes: &str,
    options: &[&str],
) -> Result<(Vec<u64>, Done, String)> {
    let (summary, words) = (dir().join("summary"), dir().join("words"));
    for left in ["lines", "said"] {
        let _ = std::fs::remove_file(dir().join(left));
    }
    let mut run = Command::new("sh");
    run.args(["-c", r#"exec "$@" 2> "$DIR/words""#, "sh"])
        .arg(hopscope_bin())
        .args(["splice", "run", ANYWAY, AT_ONCE, "--summary"])
        .arg(&summary)
        .args(options)
        .args(["--", "sh", "-c", SCRIPT])
        .env("DIR", dir())
        .env("PROGRAM", program("threads")?)
        .env("BYTES", bytes)
        .env("EXPECTED", expected);
    let output = command(&mut run)?.expect_code(0)?;
    let words = std::fs::read_to_string(&words)?;
    let again = |line: &str| -> Result<u64> {
        let said: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        ensure!(said["sent"].as_u64() == bytes.parse().ok(), "{line}");
        said["again"].as_u64().context("again")
    };
    let again = output.stdout.lines().map(again).collect::<Result<_>>()?;
    let text = std::fs::read_to_string(text(&summary)?)?;
    let summary = serde_json::from_str(&text)?;
    Ok((again, Done { output, summary }, words))
}

pub(super) fn run() -> Result<()> {
    let bytes = counts().pick("30000000", "300000000");
    let check = hopscope(&["check", "splice", "--json"])?.expect_code(0)?;
    let broken = |line: &str| line.contains("\"shared\"") && line.contains("\"broken\"");
    if !check.stdout.lines().any(broken) {
        let (again, done, words) = two_connections("", bytes, &[])?;
        ensure!(again == [0, 0], "{again:?}");
        ensure!(done.count("plain_refused")? == 0, "{words}");
        return Ok(());
    }
    let (again, done, words) = two_connections("sharing: one thread sends", bytes, &[])?;
    ensure!(
        again.len() == 2 && again[1] == 0,
        "recv failed on the second connection: {again:?}"
    );
    ensure!(
        done.count("connections")? == 1
            && done.count("shared_by_threads")? == 1
            && done.count("plain_refused")? == 1
            && words.matches("--allow sharing").count() == 1,
        "{}\n{words}",
        done.summary
    );
    done.expect_adds_up()?;
    // It is the threads that it is about, and the user has the last word. The kernel errs by chance.
    for _ in 0..TIMES {
        let (again, done, words) = two_connections("", "300000000", &["--allow", "sharing"])?;
        ensure!(
            done.count("connections")? == 2 && done.count("shared_by_threads")? == 2,
            "{}",
            done.summary
        );
        ensure!(!words.contains("one thread sends"), "{words}");
        done.expect_adds_up()?;
        if again.iter().sum::<u64>() > 0 {
            return Ok(());
        }
    }
    bail!("no recv failed in {TIMES} runs: nothing is shown")
}
