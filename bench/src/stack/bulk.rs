//! Bytes in one direction: through loss with a round trip of 1 ms, and as fast as it goes over TAP and a cable.
use super::Bench;
use super::network::{Bridged, Cables, KERNEL, client_in, last_line_of, stack_serves};
use crate::error::Result;
use crate::load::network::{Namespace, Server};
use crate::said::number;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<()> {
    let net = &Bridged::lay()?;
    for (what, percent) in [
        ("bulk_vs_cubic_0pct", "0"),
        ("bulk_vs_cubic_01pct", "0.1"),
        ("bulk_vs_cubic_1pct", "1"),
        ("bulk_vs_cubic_3pct", "3"),
    ] {
        let words = &["--loss", percent];
        bench.compare(
            what,
            |bench| {
                let _bridge = net.bridge(bench.settings, words)?;
                let sink = sink(bench, &net.far, KERNEL)?;
                kernel_sends(bench, &net.near, KERNEL, &sink.port)
            },
            |bench| {
                let _bridge = net.bridge(bench.settings, words)?;
                let sink = sink(bench, &net.far, KERNEL)?;
                let words = ["--if=a0", "--addr=10.0.0.3/24", "--no-offload"];
                stack_sends(bench, &net.near, KERNEL, &sink.port, &words)
            },
        )?;
    }
    tap(bench)
}

/// Everything left to the device that can be.
fn tap(bench: &mut Bench<'_, '_>) -> Result<()> {
    let cables = &Cables::lay()?;
    let host = cables.tap()?;
    let over_cable = |bench: &Bench<'_, '_>| {
        let sink = sink(bench, &cables.server, KERNEL)?;
        kernel_sends(bench, &cables.client, KERNEL, &sink.port)
    };
    bench.compare("bulk_out_tap_vs_veth_kernel", over_cable, |bench| {
        let sink = sink(bench, host, "10.0.2.1")?;
        let words = ["--if=tap:t0", "--addr=10.0.2.3/24"];
        stack_sends(bench, host, "10.0.2.1", &sink.port, &words)
    })?;
    bench.compare("bulk_in_tap_vs_veth_kernel", over_cable, |bench| {
        let words = ["--app=discard", "--addr=10.0.2.3/24"];
        let server = stack_serves(bench.settings, host, "tap:t0", &words)?;
        kernel_sends(bench, host, "10.0.2.3", &server.port)
    })
}

/// Takes whatever is sent.
fn sink(bench: &Bench<'_, '_>, namespace: &Namespace, host: &str) -> Result<Server> {
    let mut command = namespace.urgent(&bench.settings.hopscope);
    command.args(["load", "tcp", "serve", "--service", "sink"]);
    command.args([
        "--listen",
        &format!("{host}:0"),
        "--until-stdin-ends",
        "--json",
    ]);
    Server::start("hopscope load tcp serve", command)
}

/// Bits a second, until the other end has all.
fn kernel_sends(
    bench: &Bench<'_, '_>,
    namespace: &Namespace,
    host: &str,
    port: &str,
) -> Result<f64> {
    let ms = bench.milliseconds.to_string();
    let mut command = client_in(namespace, &bench.kernel);
    command.args(["send", host, port, &ms, "cubic"]);
    let line = last_line_of("the C client", &mut command)?;
    let of = |field| number("the C client", &line, field);
    Ok(of("/bytes")? * 8e9 / of("/ns")?)
}

fn stack_sends(
    bench: &Bench<'_, '_>,
    namespace: &Namespace,
    host: &str,
    port: &str,
    words: &[&str],
) -> Result<f64> {
    let duration = format!("{}ms", bench.milliseconds);
    let mut command = client_in(namespace, &bench.settings.hopscope);
    command.args(["stack", "connect", &format!("{host}:{port}")]);
    command
        .args(["--app=discard", "--json", "-d", &duration])
        .args(words);
    let line = last_line_of("hopscope stack connect", &mut command)?;
    let of = |field| number("hopscope stack connect", &line, field);
    Ok(of("/bytes_sent")? * 8.0 / of("/duration_s")?)
}
