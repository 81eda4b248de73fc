//! A device that goes down, or is deleted, while a program's stack is on it.
use super::running::{Server, cable, python, until, words};
use crate::stack::cable::{STACK, ip};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_says_that_its_device_is_gone", needs, gone);
}

/// Of a program that waits and sends nothing. It is left as it is, and that nothing comes any more is said, once.
fn gone() -> Result<()> {
    for (how, what) in [
        ("link set near down", "near is down: "),
        ("link del near", "near was deleted while it was in use; "),
    ] {
        cable()?;
        let program = python("echo_server.py", &["threads", STACK, "7", "1"]);
        let server = Server::start(&words(&program))?;
        ip(how)?;
        until("nothing is said of the device", || {
            Ok(server.said()?.contains("start it again"))
        })?;
        let said = server.said()?;
        ensure!(said.contains(what), "{said}");
        ensure!(said.matches("start it again").count() == 1, "{said}");
    }
    Ok(())
}
