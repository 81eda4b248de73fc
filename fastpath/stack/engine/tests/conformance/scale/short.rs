//! Connections that live for one request.
use super::open::{PORTS, Pair, full};
use hopscope_stack_engine::{RecvFlags, SendFlags};

/// The server closes first, or the client resets: tables return to what they were.
#[test]
fn short_connections_leave_nothing() {
    let count = if full() { 1_000_000 } else { 5_000 };
    let mut pair = Pair::new();
    let mut tables = Vec::new();
    let mut into = [0; 100];
    for index in 0..count {
        let client = pair.connect((index % u32::from(PORTS)) as u16);
        pair.exchange();
        let [server] = pair.accept()[..] else {
            panic!("connection {index}")
        };
        let now = pair.client.now;
        assert_eq!(
            pair.client
                .engine
                .send(now, client, b"request", SendFlags::default()),
            Ok(7)
        );
        pair.exchange();
        assert_eq!(
            pair.server
                .engine
                .recv(now, server, &mut into, RecvFlags::default()),
            Ok(7)
        );
        assert_eq!(
            pair.server
                .engine
                .send(now, server, b"response", SendFlags::default()),
            Ok(8)
        );
        pair.server.engine.close(now, server).expect("close");
        pair.exchange();
        assert_eq!(
            pair.client
                .engine
                .recv(now, client, &mut into, RecvFlags::default()),
            Ok(8)
        );
        assert_eq!(
            pair.client
                .engine
                .recv(now, client, &mut into, RecvFlags::default()),
            Ok(0)
        );
        match index % 4 {
            0 => pair.client.engine.abort(now, client).expect("abort"),
            _ => pair.client.engine.close(now, client).expect("close"),
        }
        pair.exchange();
        while pair.client.engine.next_event().is_some() {}
        while pair.server.engine.next_event().is_some() {}
        pair.pass(20);
        if index % (count / 5) == count / 5 - 1 {
            tables.push(pair.memory_bytes().1);
        }
    }
    pair.pass(61_000);
    assert_eq!(pair.client.engine.connections(pair.client.now).count(), 0);
    assert_eq!(
        pair.server.engine.connections(pair.client.now).count(),
        usize::from(PORTS)
    );
    assert_eq!(pair.memory_bytes().0, 0, "buffers");
    assert_eq!(
        (pair.client.engine.poll_at(), pair.server.engine.poll_at()),
        (None, None),
        "timers"
    );
    // 60 s of TIME-WAIT at one each 20 ms are 3,000 at most: reached in the first fifth, where counts are full.
    let growth = tables[4] as f64 / tables[1] as f64;
    assert!(!full() || growth < 1.1, "tables grow: {tables:?}");
}
