//! The kernel's echo on another kernel: its structures lie elsewhere there, and some are others.
use super::guest::{Guest, Run};
use super::part::Part;
use anyhow::{Context, Result, ensure};
use hopscope_tests::Requirement;
use serde_json::Value;

pub(super) const ECHOES: Part = Part {
    name: "vm::the_kernel_echoes",
    needs: &[Requirement::Vm],
    steps,
    holds,
};

/// One more asks whether a server is there.
const CLIENTS: u64 = 200;

fn steps(guest: &mut Guest) -> Result<()> {
    for (name, more) in [("egress", ""), ("ingress", "--local-clients")] {
        guest.step(
            name,
            &format!(
                "rm -f /tmp/echo-ready
                hopscope splice echo --mode kernel {more} --listen 127.0.0.1:7007 --json \\
                  --ready-file /tmp/echo-ready > /tmp/echo-said &
                server=$!
                while [ ! -e /tmp/echo-ready ]; do kill -0 $server || exit 3; sleep 0.1; done
                hopscope load tcp echo 127.0.0.1:7007 -n {CLIENTS} --size 9000 --timeout 60s --json
                code=$?
                kill -INT $server
                wait $server
                cat /tmp/echo-said
                exit $code"
            ),
        );
    }
    Ok(())
}

fn holds(run: &Run) -> Result<()> {
    for way in ["egress", "ingress"] {
        let said = run.step(way)?.expect_code(0)?;
        let lines: Vec<Value> = said
            .stdout
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let client = lines.iter().find(|line| line["test"] == "tcp_echo");
        let client = client.context("no summary of the clients")?;
        ensure!(client["done"] == CLIENTS, "{client}");
        let server = lines.last().context("no summary of the server")?;
        let bytes = server["kernel"][format!("{way}_bytes")].as_u64();
        ensure!(bytes >= Some(CLIENTS * 9000), "{server}");
        ensure!(server["user_bytes"] == 0, "{server}");
    }
    Ok(())
}
