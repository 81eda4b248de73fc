//! What sockets of an instance were made with: listeners in case that it goes away and comes back, others in case that their connect fails.
use crate::table::{self, Entry};
use hopscope_stack_instance::programs::wire::{Name, OptionSet};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Sockets that are known before those that no descriptor names any more are looked for.
const MANY: usize = 64;

/// What a socket was made with, and then listens with.
#[derive(Debug, Clone)]
pub struct Made {
    pub ipv6: bool,
    pub options: Vec<OptionSet>,
    /// Where the program had it bound.
    pub bound: Option<SocketAddr>,
    /// Once it listens.
    pub backlog: Option<i32>,
    /// The kernel listens at the same port.
    pub kernel_too: bool,
    /// This process has asked it for a connection since its instance has gone, and waits for the next one.
    pub waits: bool,
}

/// Of this process.
#[derive(Debug, Default)]
pub struct MadeSockets {
    made: HashMap<Name, Made>,
    many: usize,
}

impl MadeSockets {
    pub fn insert(&mut self, name: Name, made: Made) {
        if self.made.len() >= self.many.max(MANY) {
            let named: Vec<Name> = names().map(|(_, name)| name).collect();
            self.made.retain(|name, _| named.contains(name));
            self.many = 2 * self.made.len();
        }
        self.made.insert(name, made);
    }

    pub fn listens(&mut self, name: Name, backlog: i32) {
        if let Some(made) = self.made.get_mut(&name) {
            made.backlog = Some(backlog);
        }
    }

    pub fn listens_no_more(&mut self, name: Name) {
        if let Some(made) = self.made.get_mut(&name) {
            made.backlog = None;
        }
    }

    pub fn set(&mut self, name: Name, (level, number, value): (i32, i32, &[u8])) {
        if let Some(made) = self.made.get_mut(&name) {
            made.options.retain(|(l, n, _)| (*l, *n) != (level, number));
            made.options.push((level, number, value.to_vec()));
        }
    }

    pub fn waits(&mut self, name: Name) {
        if let Some(made) = self.made.get_mut(&name) {
            made.waits = true;
        }
    }

    pub fn get(&self, name: Name) -> Option<&Made> {
        self.made.get(&name)
    }

    /// With its backlog.
    pub fn listening(&self, name: Name) -> Option<(&Made, i32)> {
        let made = self.made.get(&name)?;
        Some((made, made.backlog?))
    }
}

/// Descriptors of the instance's streams.
pub fn names() -> impl Iterator<Item = (i32, Name)> {
    table::known(0, table::DESCRIPTORS_MAX - 1).filter_map(|fd| match table::get(fd) {
        Entry::Instance(name) => Some((fd, name)),
        _ => None,
    })
}
