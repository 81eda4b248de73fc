//! Requests for 600 bytes by wrk: kept connections and short ones, few and many, and through loss.
use super::Bench;
use super::rounds::Turn;
use super::servers::{in_c, nginx};
use super::ways::{Place, Program, Way};
use crate::error::Result;
use crate::load::network::Namespace;
use crate::stack::network::{Bridged, Cables};
use crate::stack::wrk::{Asked, MANY};

const ASLEEP: &[Way] = &[Way::Kernel, Way::Inline, Way::Pipeline];
const ALL: &[Way] = &[
    Way::Kernel,
    Way::KernelSpins,
    Way::Inline,
    Way::InlineSpins,
    Way::Pipeline,
];

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<()> {
    let cables = &Cables::lay()?;
    let place = Place::of(cables);
    let client = &cables.client;
    let few = |connections| Asked::new(connections, bench.seconds);
    let (one, some, thousand) = (few(1), few(64), few(1_000));
    let many = Asked::new(MANY, bench.seconds_of_many);
    for (what, ways, asked) in [
        ("http_1", ALL, one),
        ("http_64", ALL, some),
        ("http_1000", ASLEEP, thousand),
        ("http_9000", ASLEEP, many),
        ("http_short_1", ASLEEP, one.closing()),
        ("http_short_64", ASLEEP, some.closing()),
        ("http_short_1000", ASLEEP, thousand.closing()),
    ] {
        bench.in_turn(what, ways, |bench, way| {
            requested(bench, way, (place, client), &in_c(bench, way), asked)
        })?;
    }
    for (what, asked) in [
        ("nginx_64", some),
        ("nginx_1000", thousand),
        ("nginx_short_64", some.closing()),
    ] {
        bench.in_turn(what, ASLEEP, |bench, way| {
            requested(bench, way, (place, client), &nginx(bench)?, asked)
        })?;
    }
    through_loss(bench, some)
}

fn requested(
    bench: &Bench<'_, '_>,
    way: Way,
    (place, client): (Place<'_>, &Namespace),
    program: &Program,
    asked: Asked,
) -> Result<Turn> {
    let serving = way.start(bench.settings, place, program)?;
    Turn::with_processors(&serving, || {
        let found = asked.of(client, place.host(way), serving.port)?;
        let turn = Turn {
            p50_us: Some(found.p50_us),
            p99_us: Some(found.p99_us),
            ..Turn::of(found.per_s)
        };
        Ok((turn, found.requests))
    })
}

/// One segment of a hundred, each way; the shortest retransmission timeout of both stacks is 200 ms.
fn through_loss(bench: &mut Bench<'_, '_>, asked: Asked) -> Result<()> {
    let net = &Bridged::lay()?;
    let place = Place {
        namespace: &net.near,
        port: "a0",
        kernel: "10.0.0.1",
        stack: "10.0.0.3",
        words: &["--no-offload"],
    };
    bench.in_turn("http_loss_64", ASLEEP, |bench, way| {
        let _bridge = net.bridge(bench.settings, &["--loss", "1"])?;
        requested(bench, way, (place, &net.far), &in_c(bench, way), asked)
    })
}
