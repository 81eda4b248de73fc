//! What a proxy counts.
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Since the proxy's start. `accepted` = `ended` + `reset_by_client` + `reset_by_upstream` + `failed` +
        /// `connect_refused` + `connect_failed` + `connect_timed_out` + `gone_before_connect` +
        /// `over_limit` + `idle_timed_out` + `open_at_stop` + those that are open.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct ProxyCounts { $($(#[$doc])* pub $name: u64),* }

        #[derive(Debug, Default)]
        pub(super) struct Counters { $(pub(super) $name: AtomicU64,)* }

        impl Counters {
            pub(super) fn read(&self) -> ProxyCounts {
                ProxyCounts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counts! {
    accepted,
    /// Both directions ended, each after its last byte.
    ended,
    /// The client reset, and so did the proxy at the other side.
    reset_by_client,
    reset_by_upstream,
    /// By another error of one of the two sockets.
    failed,
    /// The upstream did not take the connection; the client was reset.
    connect_refused,
    connect_failed,
    connect_timed_out,
    /// The client reset before the upstream was there.
    gone_before_connect,
    /// Reset by the proxy: more was unread than the kernel may hold.
    over_limit,
    /// Reset by the proxy: it moved no byte for as long as `--idle-timeout` says.
    idle_timed_out,
    /// Reset by the end of the proxy.
    open_at_stop,
    /// `accept` failed, most often for want of descriptors. The client waits in the queue.
    accept_failed,
    /// Now.
    open,
    /// Connections that began in each engine.
    kernel_connections,
    user_connections,
    /// Copied by user space, from the client to the upstream and back.
    user_bytes_up,
    user_bytes_down,
    /// Connections that were meant for the kernel and are copied from the beginning, at least one way:
    /// one end had said its FIN before the sockets could be joined.
    not_joined_ended,
    /// The limit of redirected connections was reached.
    not_joined_full,
    /// The kernel did not take a socket (kTLS, MPTCP, another program's map).
    not_joined_refused,
    /// Ends, and bytes of user space, that had to wait until the kernel had sent its own.
    waited,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    pub(super) fn take(counter: &AtomicU64, n: u64) {
        counter.fetch_sub(n, Ordering::Relaxed);
    }
}
