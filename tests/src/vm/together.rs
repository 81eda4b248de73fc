//! What may share a guest does: a boot takes longer than most of what is then looked at.
use super::check::DESCRIBES;
use super::counted::COUNTED;
use super::echo::ECHOES;
use super::guest::Guest;
use super::harness::WHOLE;
use super::module::MODULE_ECHOES;
use super::part::Part;
use super::record::RECORDED;
use super::slice::{KILLED, SLICED};
use anyhow::{Context, Result};
use hopscope_tests::{Counts, Requirement, Suite, counts};

/// In the order in which they run: what looks at all that the kernel holds comes first.
static COMMANDS: [Part; 6] = [DESCRIBES, WHOLE, RECORDED, COUNTED, ECHOES, MODULE_ECHOES];
static SLICES: [Part; 2] = [KILLED, SLICED];

pub(super) fn register(suite: &mut Suite) {
    for (name, parts) in [
        ("vm::one_boot_for_commands", &COMMANDS[..]),
        ("vm::one_boot_for_slices", &SLICES[..]),
    ] {
        if counts() == Counts::Reduced {
            let mut needs: Vec<Requirement> = Vec::new();
            for need in parts.iter().flat_map(|part| part.needs) {
                if !needs.contains(need) {
                    needs.push(*need);
                }
            }
            let case = suite.case(name, &needs, move || in_one_guest(parts));
            case.watchdog(900);
        }
        for part in parts {
            let alone = move || in_one_guest(std::slice::from_ref(part));
            // Or by its name.
            suite
                .case(part.name, part.needs, alone)
                .soak()
                .watchdog(900);
        }
    }
}

fn in_one_guest(parts: &[Part]) -> Result<()> {
    let mut guest = Guest::new()?;
    for part in parts {
        (part.steps)(&mut guest).context(part.name)?;
    }
    let run = guest.run()?;
    for part in parts {
        (part.holds)(&run).context(part.name)?;
        println!("held: {}", part.name);
    }
    Ok(())
}
