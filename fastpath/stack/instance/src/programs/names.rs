//! Which socket is which, and which programs have it: whoever has made it, or got a descriptor of it.
use super::wire::{Name, Whose};
use nix::libc;
use std::collections::HashMap;

/// Where its key is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Connection,
    Listener,
    Datagrams,
    /// Its key is the engine that has it.
    Moved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub kind: Kind,
    pub key: u64,
}

/// Whose a new socket is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    Program(u64),
    /// It is accepted from there.
    Listener(Name),
}

struct Socket {
    place: Place,
    /// Of the programs' end of its pair.
    inode: u64,
    programs: Vec<u64>,
    listener: Option<Name>,
}

#[derive(Default)]
pub(super) struct Names {
    sockets: HashMap<Name, Socket>,
    inodes: HashMap<u64, Name>,
}

impl Names {
    pub fn insert(&mut self, name: Name, of: Of, place: Place, inode: u64) {
        let (programs, listener) = match of {
            Of::Program(program) => (vec![program], None),
            Of::Listener(listener) => {
                let socket = self.sockets.get(&listener);
                let programs = socket.map(|socket| socket.programs.clone());
                (programs.unwrap_or_default(), Some(listener))
            }
        };
        self.inodes.insert(inode, name);
        let socket = Socket {
            place,
            inode,
            programs,
            listener,
        };
        self.sockets.insert(name, socket);
    }

    /// # Errors
    /// ENOTCONN: the program has no such socket.
    pub fn find(&self, program: u64, name: Name) -> Result<Place, i32> {
        let found = self.sockets.get(&name);
        let found = found.filter(|socket| socket.programs.contains(&program));
        Ok(found.ok_or(libc::ENOTCONN)?.place)
    }

    pub fn place(&self, name: Name) -> Option<Place> {
        self.sockets.get(&name).map(|socket| socket.place)
    }

    pub fn has_moved(&self, name: Name) -> bool {
        self.place(name)
            .is_some_and(|place| place.kind == Kind::Moved)
    }

    /// It is something else from now on.
    pub fn becomes(&mut self, name: Name, place: Place) {
        if let Some(socket) = self.sockets.get_mut(&name) {
            socket.place = place;
        }
    }

    pub fn remove(&mut self, name: Name) {
        if let Some(socket) = self.sockets.remove(&name) {
            self.inodes.remove(&socket.inode);
        }
    }

    pub fn whose(&self, program: u64, inode: u64) -> Whose {
        match self.inodes.get(&inode) {
            Some(name) if self.find(program, *name).is_ok() => Whose::Yours(*name),
            Some(_) => Whose::Others,
            None => Whose::Nobodys,
        }
    }

    /// The program has a descriptor of it. Of a listener it may accept what is on its way already.
    ///
    /// # Errors
    /// ENOTCONN: it is of no socket of the instance.
    pub fn share(&mut self, program: u64, inode: u64) -> Result<Name, i32> {
        let shared = *self.inodes.get(&inode).ok_or(libc::ENOTCONN)?;
        for (name, socket) in &mut self.sockets {
            let is_it = *name == shared || socket.listener == Some(shared);
            if is_it && !socket.programs.contains(&program) {
                socket.programs.push(program);
            }
        }
        Ok(shared)
    }

    /// It asks no more.
    pub fn forget_program(&mut self, program: u64) {
        for socket in self.sockets.values_mut() {
            socket.programs.retain(|one| *one != program);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(row: u32) -> Name {
        Name { row, generation: 1 }
    }

    fn place(key: u64) -> Place {
        let kind = Kind::Connection;
        Place { kind, key }
    }

    #[test]
    fn who_has_no_descriptor_of_it_has_no_socket() {
        let mut names = Names::default();
        names.insert(name(1), Of::Program(7), place(0), 100);
        assert_eq!(names.find(7, name(1)), Ok(place(0)));
        assert_eq!(names.find(8, name(1)), Err(libc::ENOTCONN));
        assert_eq!(names.whose(7, 100), Whose::Yours(name(1)));
        assert_eq!(names.whose(8, 100), Whose::Others);
        assert_eq!(names.whose(8, 101), Whose::Nobodys);
        assert_eq!(names.share(8, 101), Err(libc::ENOTCONN));
        assert_eq!(names.share(8, 100), Ok(name(1)));
        assert_eq!(names.find(8, name(1)), Ok(place(0)));
        names.forget_program(7);
        assert_eq!(names.whose(7, 100), Whose::Others);
        names.remove(name(1));
        assert_eq!(names.whose(8, 100), Whose::Nobodys);
    }

    #[test]
    fn what_is_accepted_is_of_all_who_have_the_listener() {
        let mut names = Names::default();
        names.insert(name(1), Of::Program(7), place(0), 100);
        names.becomes(
            name(1),
            Place {
                kind: Kind::Listener,
                key: 3,
            },
        );
        names.insert(name(2), Of::Listener(name(1)), place(1), 101);
        names.insert(name(3), Of::Program(7), place(2), 102);
        assert_eq!(names.share(8, 100), Ok(name(1)));
        names.insert(name(4), Of::Listener(name(1)), place(4), 103);
        for accepted in [name(2), name(4)] {
            assert!(names.find(7, accepted).is_ok() && names.find(8, accepted).is_ok());
        }
        assert_eq!(names.find(8, name(3)), Err(libc::ENOTCONN));
    }
}
