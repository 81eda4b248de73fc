//! `-i DEV`: whether the device is still there. Once it is gone the kernel may give its number to another one, whose
//! packets were not asked for.
use super::namespace::{interfaces_of, netns};
use crate::error::{Context, Result};
use hopscope_event::slice::InterfaceEntry;
use hopscope_slice::interfaces;
use std::io::ErrorKind;

pub struct Device {
    entry: InterfaceEntry,
    /// `--netns`
    of: Option<String>,
}

impl Device {
    /// By name, or by the number of `-D`. `of`: the namespace whose device it is, as `--netns` says.
    ///
    /// # Errors
    /// There is none, or its namespace may not be entered.
    pub fn find(name: &str, of: Option<&str>) -> Result<Device> {
        let there = interfaces_of(of)?;
        let named = there.iter().find(|interface| interface.name == name);
        let numbered = || {
            let number = name.parse().ok();
            let mut there = there.iter();
            there.find(|interface| Some(interface.ifindex) == number)
        };
        let place = of.map_or("here".into(), |of| format!("in --netns {of}"));
        let found = named.or_else(numbered);
        let found = found
            .with_context(|| format!("-i {name}: no such interface {place} (-D lists them)"))?;
        Ok(Device {
            entry: found.clone(),
            of: of.map(str::to_owned),
        })
    }

    pub fn ifindex(&self) -> u32 {
        self.entry.ifindex
    }

    pub fn name(&self) -> &str {
        &self.entry.name
    }

    /// Under its name and its number: one that was renamed cannot be told from another one.
    ///
    /// # Errors
    /// Its namespace may not be entered any more (`-Z`).
    pub fn is_there(&self) -> Result<bool> {
        let Some(of) = self.of.as_deref() else {
            return Ok(interfaces_of(None)?.contains(&self.entry));
        };
        let same = netns(of)
            .ok()
            .filter(|(inode, _)| *inode == self.entry.netns);
        let there = same.map(|(inode, path)| interfaces::of_namespace(inode, path));
        match there {
            Some(Ok(there)) => Ok(there.contains(&self.entry)),
            Some(Err(error)) if error.kind() == ErrorKind::PermissionDenied => {
                Err(error).with_context(|| format!("--netns {of}: its interfaces"))
            }
            // The process by which it was named has ended; others may be in it.
            _ => Ok(interfaces::names().contains(&self.entry)),
        }
    }
}
