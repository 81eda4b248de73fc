//! Children whose end a look at their threads may learn of, in place of whoever waits for it: the kernel tells of an end once.
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By process, with the status (waitpid(2)) of those whose end was seen.
static ENDED: Mutex<BTreeMap<i32, Option<i32>>> = Mutex::new(BTreeMap::new());

fn ended() -> MutexGuard<'static, BTreeMap<i32, Option<i32>>> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of this child will be asked for.
pub(crate) fn expect(pid: i32) {
    ended().insert(pid, None);
}

/// A look at a thread has found this.
pub(crate) fn note(tid: i32, status: i32) {
    if let Some(end) = ended().get_mut(&tid) {
        *end = Some(status);
    }
}

pub(crate) fn status_of(pid: i32) -> Option<i32> {
    ended().get(&pid).copied().flatten()
}
