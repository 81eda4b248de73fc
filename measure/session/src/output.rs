//! Files that commands write what they measured to. They may hold what a program keeps secret, so
//! only their owner reads them unless another mode is asked for. Each is written beside its place
//! and put there when it is whole: what was there before outlives a failure. Devices and pipes are
//! written as they are, and are never removed or replaced.
use crate::error::{Context, Result, in_one_line, refuse, require};
use hopscope_event::Printable;
use hopscope_process::procfs;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What files get unless `--mode` says otherwise.
pub const OWNER_ONLY: u32 = 0o600;

/// Where a file that is being written belongs.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// `None`: it is a device or a pipe, or has been put in its place.
    partial: Option<PathBuf>,
    keep: bool,
}

/// A new file for `path`, under another name until [`Place::put`]. `path` itself when it is no
/// regular file.
///
/// # Errors
/// It cannot be created, or is somebody else's link or pipe.
pub fn create(path: &Path, mode: u32) -> Result<(File, Place)> {
    let asked = path;
    let creating = || format!("cannot write {}", asked.display());
    let (path, is_file) = resolved(path)?;
    if !is_file {
        let file = File::options().append(true).open(&path);
        let file = file.with_context(creating)?;
        let place = Place {
            path,
            partial: None,
            keep: false,
        };
        return Ok((file, place));
    }
    let partial = partial(&path, Writer::this());
    // Never through a link: others may write to the directory.
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(OWNER_ONLY)
        .open(&partial)
        .with_context(|| match fs::symlink_metadata(&partial) {
            Ok(_) => format!(
                "{}: {} is in the way (left by a writer that was killed, or somebody else's): move or remove it",
                creating(),
                partial.display()
            ),
            Err(_) => creating(),
        })?;
    let place = Place {
        path,
        partial: Some(partial),
        keep: false,
    };
    if mode != OWNER_ONLY {
        let permissions = Permissions::from_mode(mode);
        file.set_permissions(permissions).with_context(creating)?;
    }
    Ok((file, place))
}

/// A new file that can be read while it is written.
///
/// # Errors
/// As [`create`].
pub fn create_in_place(path: &Path, mode: u32) -> Result<File> {
    let (file, place) = create(path, mode)?;
    place.put()?;
    Ok(file)
}

impl Place {
    /// From now on what is written is kept, also when an error ends the command.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Neither a device nor a pipe.
    pub fn is_file(&self) -> bool {
        self.partial.is_some()
    }

    /// The file is whole.
    ///
    /// # Errors
    /// It cannot be renamed; it stays under its other name.
    pub fn put(mut self) -> Result<()> {
        match self.partial.take() {
            Some(partial) => rename(&partial, &self.path),
            None => Ok(()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(partial) = self.partial.take() else {
            return;
        };
        let done = if self.keep {
            rename(&partial, &self.path)
        } else {
            let removing = || format!("removing {}", partial.display());
            fs::remove_file(&partial).with_context(removing)
        };
        if let Err(e) = done {
            let line = format!("hopscope: {}\n", Printable::new(&in_one_line(&e)));
            // When stderr is gone there is nobody left to tell.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Puts what a killed process had begun into its place; `None` when it had written nothing.
///
/// # Errors
/// It cannot be renamed or removed.
pub fn complete(path: &Path, writer: Writer) -> Result<Option<PathBuf>> {
    let (path, is_file) = resolved(path)?;
    let partial = partial(&path, writer);
    let found = match fs::symlink_metadata(&partial) {
        Ok(found) if is_file && found.is_file() && is_ours(&found) => found,
        _ => return Ok(None),
    };
    if found.len() == 0 {
        let removing = || format!("removing {}", partial.display());
        fs::remove_file(&partial).with_context(removing)?;
        return Ok(None);
    }
    rename(&partial, &path)?;
    Ok(Some(path))
}

fn rename(partial: &Path, path: &Path) -> Result<()> {
    let renaming = || format!("renaming {} to {}", partial.display(), path.display());
    fs::rename(partial, path).with_context(renaming)
}

/// The process that writes a file. In containers many have the same id, on one volume: what one of
/// them left is nobody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    pid: i32,
    /// In clock ticks after boot.
    started: u64,
}

impl Writer {
    /// `None` once it has ended.
    pub fn of(pid: i32) -> Option<Writer> {
        let started = procfs::start_time(pid)?;
        Some(Writer { pid, started })
    }

    fn this() -> Writer {
        let pid = std::process::id() as i32;
        Writer::of(pid).unwrap_or(Writer { pid, started: 0 })
    }

    /// How the names of its files end until they are whole.
    pub fn ending(self) -> String {
        format!(".partial-{}-{}", self.pid, self.started)
    }
}

/// `nf.hop.partial-4711-90125`, after the process that writes it.
fn partial(path: &Path, writer: Writer) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(writer.ending());
    name.into()
}

/// What is to be written, through a link of our own or root's; true for a regular file, there or
/// not.
fn resolved(path: &Path) -> Result<(PathBuf, bool)> {
    let shown = path.display();
    require!(
        path.file_name().is_some(),
        "{shown} is not the name of a file"
    );
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok((path.to_owned(), true)),
        Err(e) => return Err(e).with_context(|| shown.to_string()),
    };
    let kind = found.file_type();
    if kind.is_file() {
        return Ok((path.to_owned(), true));
    }
    require!(!kind.is_dir(), "{shown} is a directory");
    require!(!kind.is_socket(), "{shown} is a socket");
    // Anybody may leave these in a directory like /tmp, for root to write to.
    if !is_ours(&found) {
        refuse!(
            "{shown} is a link, pipe or device of another user ({}): not written",
            found.uid()
        );
    }
    let behind = fs::metadata(path).with_context(|| shown.to_string())?;
    require!(!behind.is_dir(), "{shown} is a directory");
    // /dev/stdout may be a file, but what is open there is not to be replaced.
    let is_descriptor = path.starts_with("/dev") || path.starts_with("/proc");
    if !behind.is_file() || is_descriptor {
        return Ok((path.to_owned(), false));
    }
    let path = fs::canonicalize(path).with_context(|| shown.to_string())?;
    Ok((path, true))
}

fn is_ours(found: &fs::Metadata) -> bool {
    found.uid() == 0 || found.uid() == nix::unistd::geteuid().as_raw()
}

/// Octal permissions, as `chmod` takes them.
pub fn parse_mode(text: &str) -> std::result::Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 && mode & OWNER_ONLY == OWNER_ONLY => Ok(mode),
        _ => Err("octal permissions with those of the owner, such as 0640 or 0644".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(test: &str) -> PathBuf {
        let name = format!("hopscope-output-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let name = |e: fs::DirEntry| e.file_name().to_string_lossy().into_owned();
        entries.map(name).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").mode() & 0o777
    }

    #[test]
    fn what_was_there_outlives_a_failure() {
        let folder = folder("failure");
        let path = folder.join("x.hop");
        fs::write(&path, "old").expect("written");
        let (mut file, place) = create(&path, OWNER_ONLY).expect("created");
        file.write_all(b"new").expect("written");
        drop(place);
        assert_eq!(fs::read(&path).expect("there"), b"old");
        assert_eq!(names(&folder), ["x.hop"]);

        for keep_and_fail in [false, true] {
            fs::write(&path, "old").expect("written");
            let (mut file, mut place) = create(&path, 0o644).expect("created");
            file.write_all(b"new").expect("written");
            if keep_and_fail {
                place.keep();
                drop(place);
            } else {
                place.put().expect("put")
            }
            assert_eq!(fs::read(&path).expect("there"), b"new");
            assert_eq!((mode(&path), names(&folder).len()), (0o644, 1));
        }
        let (_, place) = create(&path, OWNER_ONLY).expect("created");
        place.put().expect("put");
        assert_eq!(mode(&path), 0o600);
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        let (mut null, place) = create(Path::new("/dev/null"), OWNER_ONLY).expect("opened");
        null.write_all(b"x").expect("written");
        assert!(!place.is_file());
        drop(place);
        let null = fs::metadata("/dev/null").expect("there still");
        assert!(null.file_type().is_char_device());

        let folder = folder("links");
        let (real, link) = (folder.join("real"), folder.join("link"));
        fs::write(&real, "old").expect("written");
        std::os::unix::fs::symlink("real", &link).expect("linked");
        let (_, place) = create(&link, OWNER_ONLY).expect("created");
        place.put().expect("put");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
        assert_eq!(fs::read(&real).expect("there"), b"");
        assert!(create(&folder, OWNER_ONLY).is_err());

        // Another user's file of the same name is not followed, and not written to.
        let taken = partial(&real, Writer::this());
        std::os::unix::fs::symlink("victim", &taken).expect("linked");
        let refused = create(&real, OWNER_ONLY).expect_err("taken");
        let said = format!("{refused:#}");
        assert!(said.contains(&*taken.to_string_lossy()), "{said}");
        assert!(said.contains("remove it"), "{said}");
        assert!(!folder.join("victim").exists());
        fs::remove_dir_all(folder).expect("removed");
    }

    /// A container has the same process ids each time it is started.
    #[test]
    fn what_a_killed_process_of_the_same_id_left_is_not_in_the_way() {
        let folder = folder("same-id");
        let path = folder.join("x.hop");
        let this = Writer::this();
        let earlier = Writer {
            started: this.started - 1,
            ..this
        };
        let left = partial(&path, earlier);
        fs::write(&left, "records").expect("written");
        let (_, place) = create(&path, OWNER_ONLY).expect("created");
        place.put().expect("put");
        assert_eq!(fs::read(&left).expect("there still"), b"records");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn what_a_killed_process_began_is_completed_once_it_holds_something() {
        let folder = folder("killed");
        let path = folder.join("x.hop");
        let writer = |pid| Writer { pid, started: 1 };
        fs::write(&path, "old").expect("written");
        fs::write(partial(&path, writer(7)), "").expect("written");
        assert_eq!(complete(&path, writer(7)).expect("looked at"), None);
        fs::write(partial(&path, writer(7)), "new").expect("written");
        assert_eq!(complete(&path, writer(8)).expect("looked at"), None);
        let completed = complete(&path, writer(7)).expect("renamed");
        assert_eq!(completed.as_deref(), Some(&*path));
        assert_eq!(
            (fs::read(&path).expect("there"), names(&folder).len()),
            (b"new".into(), 1)
        );
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn modes_are_octal_and_let_the_owner_write() {
        assert_eq!(parse_mode("0644"), Ok(0o644));
        assert_eq!(parse_mode("600"), Ok(0o600));
        for wrong in ["", "9", "044", "4755", "rw"] {
            assert!(parse_mode(wrong).is_err(), "{wrong}");
        }
    }
}
