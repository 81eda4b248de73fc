//! The machine, as qemu is told of it.
use crate::accelerator::Accelerator;
use crate::error::{Error, Result};
use crate::nic::{self, Nic};
use crate::programs::find_program;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Enough for `hopscope` and a thousand connections.
pub const MEMORY_MIB: u32 = 512;

pub(crate) struct Machine {
    pub(crate) memory_mib: u32,
    pub(crate) processors: u32,
    pub(crate) nics: Vec<Nic>,
    pub(crate) reboots: u32,
    pub(crate) accelerator: Accelerator,
    pub(crate) line: Option<PathBuf>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            memory_mib: MEMORY_MIB,
            // With two a guest without KVM is slower, and far less regular.
            processors: 1,
            nics: Vec::new(),
            reboots: 0,
            accelerator: Accelerator::default(),
            line: None,
        }
    }
}

impl Machine {
    /// `lines` are the files that its serial lines write.
    pub(crate) fn qemu(&self, kernel: &Path, initrd: &Path, lines: [&Path; 2]) -> Result<Command> {
        let program = "qemu-system-x86_64";
        find_program(program).ok_or(Error::Program {
            program,
            package: "qemu-system-x86",
        })?;
        let mut qemu = Command::new(program);
        // microvm does not boot Debian's kernel.
        qemu.args(["-M", "q35"])
            .args(self.accelerator.arguments())
            .args(["-smp", &self.processors.to_string()])
            .args(["-m", &self.memory_mib.to_string()])
            .args(["-nodefaults", "-display", "none"]);
        // A panic ends the machine; where it may boot again, it must not do so for ever.
        let panic = match self.reboots {
            0 => {
                qemu.arg("-no-reboot");
                -1
            }
            _ => 0,
        };
        for line in lines {
            qemu.arg("-serial").arg(format!("file:{}", line.display()));
        }
        if let Some(line) = &self.line {
            let line = line.to_string_lossy().replace(',', ",,");
            qemu.arg("-serial")
                .arg(format!("unix:{line},server=on,wait=off"));
        }
        qemu.arg("-kernel").arg(kernel);
        qemu.arg("-initrd").arg(initrd);
        // On a busy machine too few ticks come while the kernel tries whether they come at all.
        let append = format!("console=ttyS0 quiet panic={panic} no_timer_check");
        qemu.args(["-append", &append]);
        qemu.args(nic::arguments(
            &self.nics,
            self.memory_mib,
            &self.accelerator,
        ));
        qemu.stdin(Stdio::null());
        Ok(qemu)
    }
}
