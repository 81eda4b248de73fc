//! Requests over connections that are kept: wrk over the kernel's TCP against the server in C and the one in the stack.
use super::Bench;
use super::network::{Bridged, Cables, KERNEL, STACK, kernel_http, stack_serves};
use super::wrk::{Asked, Found, MANY};
use crate::error::Result;
use crate::load::network::{Namespace, Server};

const BODY_BYTES: u32 = 600;
/// Of a response of some segments, of which the last is lost.
const TAIL_BODY_BYTES: u32 = 6_000;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<()> {
    let cables = &Cables::lay()?;
    let kernel = |spins, connections, what: fn(&Found) -> f64| {
        move |bench: &Bench<'_, '_>| {
            let server = kernel_http(bench, &cables.server, BODY_BYTES, spins)?;
            Ok(what(&wrk(
                bench,
                &cables.client,
                KERNEL,
                connections,
                &server,
            )?))
        }
    };
    let stack = |spins, connections, what: fn(&Found) -> f64| {
        move |bench: &Bench<'_, '_>| {
            let app = format!("--app=http:{BODY_BYTES}");
            let address = format!("--addr={STACK}/24");
            let mut words = vec![&*app, &address];
            if spins {
                words.push("--spin");
            }
            let server = stack_serves(bench.settings, &cables.server, "s1", &words)?;
            Ok(what(&wrk(
                bench,
                &cables.client,
                STACK,
                connections,
                &server,
            )?))
        }
    };
    let rate: fn(&Found) -> f64 = |found| found.per_s;
    let p50: fn(&Found) -> f64 = |found| found.p50_us;
    bench.compare(
        "http_vs_kernel_64",
        kernel(false, 64, rate),
        stack(false, 64, rate),
    )?;
    bench.compare(
        "http_vs_kernel_1000",
        kernel(false, 1000, rate),
        stack(false, 1000, rate),
    )?;
    bench.compare(
        "http_vs_kernel_9000",
        kernel(false, 9000, rate),
        stack(false, 9000, rate),
    )?;
    bench.compare(
        "http_vs_spinning_kernel_64",
        kernel(true, 64, rate),
        stack(true, 64, rate),
    )?;
    bench.compare(
        "p50_1_vs_kernel",
        kernel(false, 1, p50),
        stack(true, 1, p50),
    )?;
    bench.compare(
        "p50_1_sleeping_vs_kernel",
        kernel(false, 1, p50),
        stack(false, 1, p50),
    )?;
    bench.compare(
        "p50_1_vs_spinning_kernel",
        kernel(true, 1, p50),
        stack(true, 1, p50),
    )?;
    tail_loss(bench)
}

/// Each response loses its last segment once: the median latency is what it takes to repair it.
fn tail_loss(bench: &mut Bench<'_, '_>) -> Result<()> {
    let net = &Bridged::lay()?;
    // The server is at the near end: what is lost comes from there.
    let words = &["--tail-loss", "100", "--one-way"];
    bench.compare(
        "tail_loss_recovery_vs_kernel",
        |bench| {
            let _bridge = net.bridge(bench.settings, words)?;
            let server = kernel_http(bench, &net.near, TAIL_BODY_BYTES, false)?;
            Ok(wrk(bench, &net.far, "10.0.0.1", 1, &server)?.p50_us)
        },
        |bench| {
            let _bridge = net.bridge(bench.settings, words)?;
            let app = format!("--app=http:{TAIL_BODY_BYTES}");
            let words = [&*app, "--addr=10.0.0.3/24", "--no-offload"];
            let server = stack_serves(bench.settings, &net.near, "a0", &words)?;
            Ok(wrk(bench, &net.far, "10.0.0.3", 1, &server)?.p50_us)
        },
    )
}

fn wrk(
    bench: &Bench<'_, '_>,
    namespace: &Namespace,
    host: &str,
    connections: u32,
    server: &Server,
) -> Result<Found> {
    let seconds = if connections < MANY {
        bench.seconds
    } else {
        bench.seconds_of_many
    };
    let asked = Asked::new(connections, seconds);
    asked.of(namespace, host, &server.port)
}
