//! Modules that switch stacks: a thread may have suspended ones anywhere, also below its running frame.
use super::{Image, Role};

/// Of libc, libucontext, Boost.Context, libtask, libco, libcoro, State Threads and PHP's fibers. Switches in inline
/// assembly have no name.
const SWITCHERS: [&str; 17] = [
    "swapcontext",
    "setcontext",
    "makecontext",
    "libucontext_swapcontext",
    "libucontext_setcontext",
    "libucontext_makecontext",
    "boost_swapcontext",
    "make_fcontext",
    "jump_fcontext",
    "ontop_fcontext",
    "coro_transfer",
    "coro_create",
    "co_swap",
    "co_switch",
    "co_create",
    "taskswitch",
    "st_thread_create",
];

impl Image {
    /// Whether it imports such a function, or has one itself; the C library, which offers them, does not count.
    pub fn switches_stacks(&self) -> bool {
        let is_one = |name: &str| SWITCHERS.contains(&name);
        self.unwinds().role != Role::SystemLibrary
            && (self.imports().any(is_one)
                || self.functions().iter().any(|f| f.names().any(is_one)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_switches_no_stacks() {
        let image = Image::open(&std::env::current_exe().expect("a path")).expect("opens");
        assert!(!image.switches_stacks());
    }
}
