//! Blocking calls in virtual time. packetdrill makes them on a second thread and goes on when that sleeps; the first
//! thread moves the clock. After everything that may have made a call possible it stops until each sleeper has tried
//! again, and, where the call is done, has read the clock, which is what the script's end of the call is compared with.
use crate::stack::Stack;
use hopscope_stack_engine::Ns;
use nix::libc;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A call of the first thread that cannot be done gives up after so long, as virtual time goes.
const FIRST_THREAD_LIMIT: Ns = Ns::from_ms(300_000);
/// Of real time: how long the first thread waits for a sleeper that is done to read the clock.
const CLOCK_READ_LIMIT: Duration = Duration::from_millis(200);

struct Inner {
    stack: Option<Stack>,
    first_thread: ThreadId,
    /// Counts changes, so that each sleeper tries once after each.
    epoch: u64,
    sleepers: u32,
    /// Sleepers that have not tried since the last change.
    to_try: u32,
    /// Sleepers whose call is done, and who have not read the clock.
    to_read_clock: u32,
    /// The second thread, below /proc, once its call is done: what packetdrill does then it does on its own time.
    finishing: Option<PathBuf>,
    /// Until when a sleeper waits at most.
    deadline: Option<Ns>,
}

pub struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

/// The first call makes its thread the one that moves the clock.
pub fn shared() -> &'static Shared {
    SHARED.get_or_init(|| Shared {
        inner: Mutex::new(Inner {
            stack: None,
            first_thread: std::thread::current().id(),
            epoch: 0,
            sleepers: 0,
            to_try: 0,
            to_read_clock: 0,
            finishing: None,
            deadline: None,
        }),
        changed: Condvar::new(),
    })
}

/// `None` before packetdrill has loaded the library.
pub fn present() -> Option<&'static Shared> {
    SHARED.get()
}

impl Inner {
    /// Made at the first call, when the script's first line has set the sysctls.
    fn stack(&mut self) -> &mut Stack {
        self.stack.get_or_insert_with(Stack::new)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A call that does not block.
    pub fn call<T>(&self, call: impl FnOnce(&mut Stack) -> T) -> T {
        let mut inner = self.lock();
        let result = call(inner.stack());
        inner.stack().pump();
        drop(self.settle(inner));
        result
    }

    /// A call that fails with EAGAIN until it can be done, and blocks so long unless `now` says no; at most for `limit`.
    pub fn call_until<T>(
        &self,
        nonblocking: impl Fn(&Stack) -> bool,
        limit: Option<Ns>,
        mut call: impl FnMut(&mut Stack) -> Result<T, i32>,
    ) -> Result<T, i32> {
        let mut inner = self.lock();
        let begin = inner.stack().now;
        let end = limit.map(|limit| begin + limit);
        loop {
            let result = call(inner.stack());
            inner.stack().pump();
            let stack = inner.stack();
            let expired = end.is_some_and(|end| stack.now >= end);
            let done = !matches!(result, Err(libc::EAGAIN)) || nonblocking(stack) || expired;
            if std::thread::current().id() == inner.first_thread {
                if done {
                    drop(self.settle(inner));
                    return result;
                }
                let end = end.unwrap_or(begin + FIRST_THREAD_LIMIT);
                if !inner.stack().step(end) && limit.is_none() {
                    return result;
                }
                continue;
            }
            if done {
                inner.to_read_clock += 1;
                let thread = std::fs::read_link("/proc/thread-self").ok();
                inner.finishing = thread.map(|thread| Path::new("/proc").join(thread).join("stat"));
                self.changed.notify_all();
                return result;
            }
            inner.deadline = end;
            inner = self.sleep(inner);
        }
    }

    /// Until the next change. The caller then tries.
    fn sleep<'a>(&self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        let epoch = inner.epoch;
        inner.sleepers += 1;
        self.changed.notify_all();
        while inner.epoch == epoch {
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        inner.sleepers -= 1;
        inner.to_try -= 1;
        inner.deadline = None;
        inner
    }

    /// Lets each sleeper try.
    fn settle<'a>(&'a self, mut inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        if std::thread::current().id() != inner.first_thread || inner.sleepers == 0 {
            return inner;
        }
        inner.epoch += 1;
        inner.to_try = inner.sleepers;
        self.changed.notify_all();
        // A sleeper holds the lock until it sleeps again or is done.
        while inner.to_try > 0 {
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        let read = self
            .changed
            .wait_timeout_while(inner, CLOCK_READ_LIMIT, |inner| inner.to_read_clock > 0);
        let (mut inner, _) = read.unwrap_or_else(|poisoned| poisoned.into_inner());
        inner.to_read_clock = 0;
        inner
    }

    /// usleep(3): the clock goes on, with every timer in its turn.
    pub fn pass(&self, span: Ns) {
        let mut inner = self.lock();
        // packetdrill has given up its lock for this call, which the second thread takes to note its result.
        if let Some(thread) = inner.finishing.take() {
            drop(inner);
            wait_until_asleep(&thread);
            inner = self.lock();
        }
        let end = inner.stack().now + span;
        loop {
            let next = inner.deadline.map_or(end, |deadline| deadline.min(end));
            let more = inner.stack().step(next);
            inner = self.settle(inner);
            if !more && next == end {
                return;
            }
        }
    }

    /// The oldest packet that was sent; where there is none, the clock goes on until there is, at most for `limit`.
    pub fn next_packet(&self, limit: Ns) -> Option<(Ns, Vec<u8>)> {
        let mut inner = self.lock();
        let end = inner.stack().now + limit;
        loop {
            inner.stack().pump();
            if let Some(packet) = inner.stack().sent.pop_front() {
                return Some(packet);
            }
            let begin = inner.stack().now;
            let next = inner
                .deadline
                .map_or(end, |deadline| deadline.min(end))
                .max(begin);
            if !inner.stack().step(next) && next == end {
                inner.stack().now = begin;
                return None;
            }
            inner = self.settle(inner);
        }
    }

    /// Advances with each look at it, because packetdrill spins on it: the second thread, too, until its call begins.
    pub fn read_clock(&self) -> Ns {
        let mut inner = self.lock();
        if inner.to_read_clock > 0 && std::thread::current().id() != inner.first_thread {
            inner.to_read_clock -= 1;
            self.changed.notify_all();
            return inner.stack().now;
        }
        let next = inner.stack().now + Ns::from_us(1);
        while inner.stack().step(next) {}
        self.settle(inner).stack().now
    }
}

fn wait_until_asleep(stat: &Path) {
    let begin = Instant::now();
    while begin.elapsed() < CLOCK_READ_LIMIT {
        let text = std::fs::read_to_string(stat).unwrap_or_default();
        // After the name, which is in parentheses.
        let state = text
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        if state != Some('R') {
            return;
        }
        std::thread::yield_now();
    }
}
