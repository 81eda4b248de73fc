//! Tests on another kernel: Debian's 6.1 in a virtual machine without KVM. Its hooks are others
//! than this machine's (`scripts/install-vm` fetches it).
use hopscope_tests::Suite;

mod beside;
mod check;
mod counted;
mod echo;
mod guest;
mod harness;
mod module;
mod part;
mod record;
mod slice;
mod splice;
mod together;

pub(crate) fn register(suite: &mut Suite) {
    harness::register(suite);
    beside::register(suite);
    splice::register(suite);
    together::register(suite);
}
