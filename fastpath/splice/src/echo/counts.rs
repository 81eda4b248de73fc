//! What a server counts. Each thread has its own, which others read now and then.
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Since the server's start. `accepted` = `ended` + `reset` + `failed` + `over_limit` +
        /// `open_at_stop`.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct EchoCounts { $($(#[$doc])* pub $name: u64),* }

        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(super) struct Counters { $(pub(super) $name: AtomicU64,)* }

        impl Counters {
            pub(super) fn add_to(&self, sum: &mut EchoCounts) {
                $(sum.$name += self.$name.load(Ordering::Relaxed);)*
            }
        }
    };
}

counts! {
    accepted,
    /// The client sent FIN, and received everything before the server's.
    ended,
    /// By the client.
    reset,
    /// By another error.
    failed,
    /// By the server: the client left too much unread, which the kernel cannot hold back.
    over_limit,
    /// Cut off by the end of the server.
    open_at_stop,
    /// `accept` failed, most often for want of descriptors. The client waits in the queue.
    accept_failed,
    /// Sent back by user space.
    user_bytes,
    /// Ends, and bytes of user space, that had to wait until the kernel had sent its own.
    waited,
}

impl Counters {
    pub(super) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
