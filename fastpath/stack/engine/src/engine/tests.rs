//! Two engines on an Ethernet whose frames are lost, changed, cut, forged and split, while random calls are made on sockets of both.
//! Nothing panics, each frame that is sent is right, time goes on, and at the end all memory is back.
mod check;
mod fates;
mod wire;

use crate::{HowToShut, RecvFlags, SendFlags, SocketKind, SocketOption};
use fates::{Fate, fate};
use proptest::prelude::*;
use wire::Wire;

#[derive(Debug, Clone)]
enum Call {
    Socket(SocketKind, bool),
    Bind(u16),
    Listen(u32),
    Accept,
    Connect(u16),
    Disconnect,
    Send(u16),
    SendTo(u16, u16),
    Recv(u16),
    RecvFrom,
    Shutdown(HowToShut),
    Close,
    Abort,
    Option(SocketOption),
}

#[derive(Debug, Clone)]
enum Step {
    /// Of one engine, on one of the ids that it gave, open or not.
    Call(bool, prop::sample::Index, Call),
    /// The oldest frame to one engine.
    Frame(bool, Fate),
    /// All that there are, as they are.
    Settle,
    PassMs(u32),
    /// Of one engine's device.
    Mtu(bool, u16),
}

fn call() -> impl Strategy<Value = Call> {
    use SocketOption::*;
    let kind = || prop_oneof![3 => Just(SocketKind::Tcp), 1 => Just(SocketKind::Udp)];
    let how = prop_oneof![
        Just(HowToShut::Read),
        Just(HowToShut::Write),
        Just(HowToShut::Both)
    ];
    let option = prop::sample::select(vec![
        NoDelay(true),
        Cork(true),
        Cork(false),
        KeepAlive(true),
        ReuseAddress(true),
        ReusePort(true),
        V6Only(true),
        ReceiveBuffer(1),
        SendBuffer(1),
        MaxSegment(88),
        HopLimit(1),
        Linger(crate::Linger::Reset),
    ]);
    prop_oneof![
        4 => (kind(), any::<bool>()).prop_map(|(k, v6)| Call::Socket(k, v6)),
        2 => (0u16..3).prop_map(Call::Bind),
        2 => (0u32..4).prop_map(Call::Listen),
        3 => Just(Call::Accept),
        4 => (1u16..3).prop_map(Call::Connect),
        1 => Just(Call::Disconnect),
        6 => any::<u16>().prop_map(Call::Send),
        2 => (1u16..3, 0u16..5_000).prop_map(|(p, l)| Call::SendTo(p, l)),
        4 => any::<u16>().prop_map(Call::Recv),
        2 => Just(Call::RecvFrom),
        2 => how.prop_map(Call::Shutdown),
        2 => Just(Call::Close),
        1 => Just(Call::Abort),
        2 => option.prop_map(Call::Option),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<bool>(), any::<prop::sample::Index>(), call()).prop_map(|(e, i, c)| Step::Call(e, i, c)),
        8 => (any::<bool>(), fate()).prop_map(|(e, f)| Step::Frame(e, f)),
        2 => Just(Step::Settle),
        2 => prop_oneof![0u32..50, 0u32..3_000].prop_map(Step::PassMs),
        1 => (any::<bool>(), 68u16..=1500).prop_map(|(e, mtu)| Step::Mtu(e, mtu)),
    ]
}

fn make(wire: &mut Wire, end: usize, id: prop::sample::Index, call: &Call) {
    let now = wire.now;
    let host = &mut wire.hosts[end];
    if let Call::Socket(kind, ipv6) = call {
        host.ids.extend(host.engine.socket(*kind, *ipv6));
        return;
    }
    if host.ids.is_empty() {
        return;
    }
    // One of the newest, mostly: what was done to them goes on.
    let place = id.index(4 * host.ids.len());
    let place = place
        % host.ids.len().min(if place.is_multiple_of(4) {
            usize::MAX
        } else {
            5
        });
    let id = host.ids[host.ids.len() - 1 - place];
    let ipv6 = host.engine.local_address(id).is_ok_and(|a| a.is_ipv6());
    let peer = |port| wire::address(1 - end, ipv6, port);
    let engine = &mut host.engine;
    let mut into = vec![0; 70_000];
    let flags = RecvFlags::default();
    match *call {
        Call::Socket(..) => {}
        Call::Bind(port) => {
            let _ = engine.bind(id, wire::address(end, ipv6, port));
        }
        Call::Listen(backlog) => {
            let _ = engine.listen(id, backlog);
        }
        Call::Accept => host.ids.extend(engine.accept(id).map(|(id, _)| id)),
        Call::Connect(port) => {
            let _ = engine.connect(now, id, Some(peer(port)));
        }
        Call::Disconnect => {
            let _ = engine.connect(now, id, None);
        }
        Call::Send(len) => {
            let _ = engine.send(now, id, &into[..len.into()], SendFlags::default());
        }
        Call::SendTo(port, len) => {
            let _ = engine.send_to(now, id, &into[..len.into()], Some(peer(port)));
        }
        Call::Recv(len) => {
            let _ = engine.recv(now, id, &mut into[..len.into()], flags);
        }
        Call::RecvFrom => {
            let _ = engine.recv_from(id, &mut into, flags);
        }
        Call::Shutdown(how) => {
            let _ = engine.shutdown(now, id, how);
        }
        Call::Close => {
            let _ = engine.close(now, id);
        }
        Call::Abort => {
            let _ = engine.abort(now, id);
        }
        Call::Option(option) => {
            let _ = engine.set_option(now, id, option);
        }
    }
    let engine = &mut host.engine;
    let _ = (
        engine.readiness(id),
        engine.unread_bytes(id),
        engine.unacknowledged_bytes(id),
    );
    let _ = (engine.tcp_info(now, id), engine.peer_address(id));
    while engine.next_event().is_some() {}
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn any_calls_and_frames_end_well(
        offload: bool,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut wire = Wire::new(offload);
        for step in &steps {
            match step {
                Step::Call(end, id, call) => make(&mut wire, usize::from(*end), *id, call),
                Step::Frame(end, fate) => wire.deliver(usize::from(*end), fate),
                Step::Settle => wire.settle(),
                Step::PassMs(ms) => wire.pass_ms(u64::from(*ms)),
                Step::Mtu(end, mtu) => {
                    let now = wire.now;
                    wire.hosts[usize::from(*end)].engine.set_mtu(now, *mtu);
                }
            }
            wire.pump();
        }
        wire.end();
    }
}
