//! Names by which users know a module: a path or a link to its file, or what its process was started as.
use super::error::LocateError;
use super::mapped::{MappedModule, identity_of};
use super::pattern::Pattern;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The modules that a pattern may mean.
pub struct ModuleNames {
    modules: Vec<Module>,
    /// What the first of them, the program itself, is also called.
    started_as: Vec<String>,
    root: PathBuf,
}

struct Module {
    path: PathBuf,
    inode: u64,
    /// `None`: its file is not to be had any more.
    device: Option<u64>,
}

impl ModuleNames {
    /// Reads what it was started as from `/proc/PID`.
    pub fn of_process(pid: i32, mapped: &[MappedModule]) -> ModuleNames {
        let proc = Path::new("/proc").join(pid.to_string());
        let program = fs::metadata(proc.join("exe")).map(|m| m.ino()).ok();
        let mut modules: Vec<Module> = Vec::new();
        for m in mapped {
            if modules.iter().all(|known| known.path != m.path) {
                modules.push(Module {
                    path: m.path.clone(),
                    inode: m.inode(),
                    device: identity_of(pid, m).map(|((device, _), _)| device),
                });
            }
        }
        modules.sort_by_key(|m| Some(m.inode) != program);
        let started_as = match modules.first() {
            Some(first) if Some(first.inode) == program => started_as(&proc),
            _ => Vec::new(),
        };
        ModuleNames {
            modules,
            started_as,
            root: proc.join("root"),
        }
    }

    pub fn of_file(path: &Path) -> ModuleNames {
        let metadata = fs::metadata(path).ok();
        let whole = fs::canonicalize(path).ok();
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
        ModuleNames {
            modules: vec![Module {
                path: path.to_owned(),
                inode: metadata.as_ref().map_or(0, MetadataExt::ino),
                device: metadata.as_ref().map(MetadataExt::dev),
            }],
            started_as: whole.and_then(name).into_iter().collect(),
            root: PathBuf::from("/"),
        }
    }

    /// # Errors
    /// As for [`ModuleNames::resolve`].
    pub fn resolve_all(&self, patterns: &[Pattern]) -> Result<Vec<Pattern>, LocateError> {
        patterns.iter().map(|p| self.resolve(p)).collect()
    }

    /// The pattern with its module's path, when what it names is no module's file name.
    ///
    /// # Errors
    /// When the name may mean several modules.
    pub fn resolve(&self, pattern: &Pattern) -> Result<Pattern, LocateError> {
        let Some(name) = pattern.exact_module() else {
            return Ok(pattern.clone());
        };
        let by_file = |m: &&Module| pattern.matches_module(&m.path.to_string_lossy());
        let named: Vec<&Module> = self.modules.iter().filter(by_file).collect();
        let program = self.program_called(name);
        let found: Vec<&Module> = match named.is_empty() {
            // What has that name is meant, unless the program is started under it too.
            false => match program {
                Some(program) if !named.iter().any(|m| std::ptr::eq(*m, program)) => {
                    named.into_iter().chain([program]).collect()
                }
                _ => return Ok(pattern.clone()),
            },
            true => {
                let known = |m: &&Module| {
                    program.is_some_and(|p| std::ptr::eq(p, *m)) || self.leads_to(name, m)
                };
                self.modules.iter().filter(known).collect()
            }
        };
        match found[..] {
            [] => Ok(pattern.clone()),
            [one] => Ok(pattern.at(&one.path.to_string_lossy())),
            _ => {
                let paths: Vec<_> = found.iter().map(|m| m.path.display().to_string()).collect();
                Err(LocateError::Pattern {
                    pattern: pattern.to_string(),
                    why: format!(
                        "{name} may be any of {}; give the path: '{}!...'",
                        paths.join(", "),
                        paths[0]
                    ),
                })
            }
        }
    }

    fn program_called(&self, name: &str) -> Option<&Module> {
        let is_it = self.started_as.iter().any(|known| known == name);
        self.modules.first().filter(|_| is_it)
    }

    /// Whether the name, beside the module's file or a path of its own, is that file or a link to it.
    fn leads_to(&self, name: &str, module: &Module) -> bool {
        let given = Path::new(name);
        if given == module.path {
            return true;
        }
        let path = match name.contains('/') {
            true => given.to_owned(),
            false => module.path.with_file_name(name),
        };
        let inside = path.strip_prefix("/").ok().map(|p| self.root.join(p));
        let is_it = |path: &Path| {
            let found = fs::metadata(path);
            let same = |m: fs::Metadata| {
                m.ino() == module.inode && module.device.is_none_or(|device| device == m.dev())
            };
            found.is_ok_and(same)
                // A link to where the file was before it was replaced.
                || fs::canonicalize(path).is_ok_and(|whole| whole == module.path)
        };
        is_it(&path) || inside.is_some_and(|path| is_it(&path))
    }
}

/// The name of the program as of `execve` (which scripts and links give too), and its first argument's
/// last part: the former has 15 characters at most.
fn started_as(proc: &Path) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok(comm) = fs::read_to_string(proc.join("comm")) {
        names.push(comm.trim_end().to_owned());
    }
    let command_line = fs::read(proc.join("cmdline")).unwrap_or_default();
    let first = command_line.split(|b| *b == 0).next().unwrap_or_default();
    if let Ok(first) = std::str::from_utf8(first) {
        // A login shell's begins with a dash.
        let last = first.rsplit('/').next().unwrap_or(first);
        names.push(last.trim_start_matches('-').to_owned());
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, inode: u64) -> Module {
        Module {
            path: path.into(),
            inode,
            device: None,
        }
    }

    fn names(started_as: &[&str]) -> ModuleNames {
        ModuleNames {
            modules: vec![
                module("/nowhere/bin/python3.11", 1),
                module("/nowhere/lib/libz.so.1.2", 2),
                module("/nowhere/lib/dupe", 3),
            ],
            started_as: started_as.iter().map(|n| (*n).to_owned()).collect(),
            root: "/nowhere".into(),
        }
    }

    fn found(names: &ModuleNames, text: &str) -> Vec<String> {
        let pattern = names.resolve(&Pattern::parse(text).unwrap()).unwrap();
        let paths = names.modules.iter().map(|m| m.path.display().to_string());
        paths.filter(|p| pattern.matches_module(p)).collect()
    }

    #[test]
    fn a_program_is_known_as_what_it_was_started_as() {
        let names = names(&["python3"]);
        assert_eq!(found(&names, "python3!*"), ["/nowhere/bin/python3.11"]);
        assert_eq!(found(&names, "python3.11!*"), ["/nowhere/bin/python3.11"]);
        assert_eq!(found(&names, "/nowhere/lib/dupe!*"), ["/nowhere/lib/dupe"]);
        assert_eq!(found(&names, "libz!*"), ["/nowhere/lib/libz.so.1.2"]);
        assert_eq!(found(&names, "perl!*"), [""; 0]);
        assert_eq!(found(&names, "*").len(), 3);
    }

    #[test]
    fn a_name_of_two_modules_is_refused_in_one_line() {
        let pattern = Pattern::parse("dupe!*").unwrap();
        let why = names(&["dupe"]).resolve(&pattern).unwrap_err().to_string();
        assert_eq!(
            why,
            "pattern \"dupe!*\": dupe may be any of /nowhere/lib/dupe, /nowhere/bin/python3.11; give the path: \
             '/nowhere/lib/dupe!...'"
        );
        // Several with one name are all meant, as ever.
        assert!(names(&["x"]).resolve(&pattern).is_ok());
    }

    #[test]
    fn links_lead_to_their_file() {
        let folder = std::env::temp_dir().join(format!("module-names-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (file, link, far) = (folder.join("nf-1.2"), folder.join("nf"), folder.join("far"));
        fs::write(&file, b"x").unwrap();
        for at in [&link, &far] {
            let _ = fs::remove_file(at);
        }
        std::os::unix::fs::symlink("nf-1.2", &link).unwrap();
        std::os::unix::fs::symlink(&file, &far).unwrap();
        let mut names = names(&[]);
        let inode = fs::metadata(&file).unwrap().ino();
        names.modules.push(module(file.to_str().unwrap(), inode));
        let is = [file.display().to_string()];
        assert_eq!(found(&names, "nf!*"), is);
        assert_eq!(found(&names, &format!("{}!*", far.display())), is);
        // Replaced: the link leads to where it was.
        names.modules.last_mut().unwrap().inode = 0;
        assert_eq!(found(&names, "nf!*"), is);
        fs::remove_dir_all(folder).unwrap();
    }
}
