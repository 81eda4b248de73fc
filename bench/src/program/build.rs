use super::generate::{self, Place, ProgramPlan};
use crate::error::{Error, Result};
use hopscope_compare::error::last_words;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the program is made ready for a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    /// As a user's program: nothing in it knows that it will be measured.
    Plain,
    /// Relinked with `ld --wrap` and empty hooks.
    WrapEmpty,
    /// Relinked with `ld --wrap` and hooks that write hopscope's 16-byte record.
    WrapRecord,
    /// Rebuilt with `-pg -mfentry` for uftrace.
    Mfentry,
    /// Rebuilt with clang's XRay sleds.
    Xray,
    /// The same, with an empty handler set and patched in at start.
    XrayEmpty,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Plain => "plain",
            Variant::WrapEmpty => "wrap-empty",
            Variant::WrapRecord => "wrap-record",
            Variant::Mfentry => "mfentry",
            Variant::Xray => "xray",
            Variant::XrayEmpty => "xray-empty",
        }
    }

    /// Objects are shared by the variants that compile the functions alike.
    fn objects(self) -> &'static str {
        match self {
            Variant::Plain | Variant::WrapEmpty | Variant::WrapRecord => "objects-plain",
            Variant::Mfentry => "objects-mfentry",
            Variant::Xray | Variant::XrayEmpty => "objects-xray",
        }
    }

    /// Options for the measured functions only: a measured harness would count its own calls.
    fn function_options(self) -> &'static [&'static str] {
        match self {
            Variant::Plain | Variant::WrapEmpty | Variant::WrapRecord => &[],
            Variant::Mfentry => &["-pg", "-mfentry"],
            Variant::Xray | Variant::XrayEmpty => {
                &["-fxray-instrument", "-fxray-instruction-threshold=1"]
            }
        }
    }

    fn link_options(self) -> &'static [&'static str] {
        match self {
            Variant::Plain => &[],
            Variant::WrapEmpty | Variant::WrapRecord => &["-Wl,@wrap.options"],
            Variant::Mfentry => &["-pg"],
            Variant::Xray | Variant::XrayEmpty => &["-fxray-instrument"],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler(pub String);

/// A built program and its library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub executable: PathBuf,
    pub library: Option<PathBuf>,
}

const HARNESS_H: &str = include_str!("harness.h");
/// Builds `plan` in `dir`; objects whose source and options have not changed are kept.
pub fn build(
    dir: &Path,
    plan: &ProgramPlan,
    compiler: &Compiler,
    variant: Variant,
) -> Result<Program> {
    let objects_dir = dir.join(plan.name).join(variant.objects());
    let dir = dir.join(plan.name).join(variant.name());
    for each in [&objects_dir, &dir] {
        fs::create_dir_all(each).map_err(Error::file("create", each))?;
    }
    write_if_new(&objects_dir.join("harness.h"), HARNESS_H)?;
    let shop = Shop {
        dir: &objects_dir,
        compiler,
    };
    let floor_callee = format!("-DFLOOR_CALLEE={}", generate::name(Place::Executable, 5, 0));
    let mut objects = vec![
        shop.compile("harness", include_str!("harness.c"), &[])?,
        shop.compile("floors", include_str!("floors.c"), &[&floor_callee])?,
        shop.compile("phases", &generate::phases(plan), &[])?,
        shop.compile("tree", &generate::tree(), variant.function_options())?,
        shop.compile(
            "pipeline",
            &generate::pipeline(),
            variant.function_options(),
        )?,
    ];
    for family in &plan.executable {
        let text = generate::family(Place::Executable, *family);
        let name = format!("e{}", family.body);
        objects.push(shop.compile(&name, &text, variant.function_options())?);
    }
    if variant == Variant::XrayEmpty {
        let text = include_str!("xray_empty.c");
        objects.push(shop.compile("xray_empty", text, &[])?);
    }
    let hooks = match variant {
        Variant::WrapEmpty => Some(("hooks-empty", [].as_slice())),
        Variant::WrapRecord => Some(("hooks-record", ["-DHOOK_RECORDS"].as_slice())),
        _ => None,
    };
    if let Some((name, options)) = hooks {
        objects.push(shop.compile(name, include_str!("hooks.c"), options)?);
        objects.push(shop.compile("wrappers", &generate::wrappers(plan), &[])?);
        write_if_new(&dir.join("wrap.options"), &generate::wrap_options(plan))?;
    }
    let link = |output: &Path, options: &[&str], objects: &[PathBuf]| {
        let mut link = Command::new(compiler);
        link.current_dir(&dir).args(options).args(objects);
        run(link.arg("-o").arg(output)).map(drop)
    };
    let library = if plan.library.is_empty() {
        None
    } else {
        let library = dir.join("libhopscope-bench.so");
        link(&library, &["-shared"], &shop.library(plan)?)?;
        Some(library)
    };
    objects.extend(library.clone());
    let executable = dir.join("hopscope-bench-program");
    let options = [variant.link_options(), &["-pthread", "-Wl,-rpath,$ORIGIN"]].concat();
    link(&executable, &options, &objects)?;
    Ok(Program {
        executable,
        library,
    })
}

struct Shop<'a> {
    dir: &'a Path,
    compiler: &'a Compiler,
}

impl Shop<'_> {
    fn compile(&self, name: &str, text: &str, options: &[&str]) -> Result<PathBuf> {
        let source = self.dir.join(format!("{name}.c"));
        let object = self.dir.join(format!("{name}.o"));
        let stamp = self.dir.join(format!("{name}.stamp"));
        let made_of = {
            let mut hasher = DefaultHasher::new();
            (text, HARNESS_H, options, &self.compiler.0).hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        };
        if object.exists() && fs::read_to_string(&stamp).is_ok_and(|s| s == made_of) {
            return Ok(object);
        }
        write_if_new(&source, text)?;
        let mut command = Command::new(self.compiler);
        command
            .args(["-O2", "-g1", "-std=gnu11", "-c"])
            .args(options);
        run(command.arg(&source).arg("-o").arg(&object))?;
        fs::write(&stamp, made_of).map_err(Error::file("write", &stamp))?;
        Ok(object)
    }

    fn library(&self, plan: &ProgramPlan) -> Result<Vec<PathBuf>> {
        plan.library
            .iter()
            .map(|family| {
                let text = generate::family(Place::Library, *family);
                self.compile(&format!("l{}", family.body), &text, &["-fPIC"])
            })
            .collect()
    }
}

fn write_if_new(path: &Path, text: &str) -> Result<()> {
    match fs::read_to_string(path) {
        Ok(old) if old == text => Ok(()),
        _ => fs::write(path, text).map_err(Error::file("write", path)),
    }
}

/// Runs to the end; what it said on stderr is in the error.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    run_as(&program, command)
}

/// The same for a command that only leads to the program which a reader wants named.
pub(crate) fn run_as(program: &str, command: &mut Command) -> Result<String> {
    let done = command.output().map_err(Error::start(program))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(Error::failed(program, done.status, last_words(&said)))
}

impl Compiler {
    /// `$CC`, or gcc.
    pub fn of_the_system() -> Compiler {
        Compiler(std::env::var("CC").unwrap_or_else(|_| "gcc".into()))
    }
}

impl AsRef<OsStr> for Compiler {
    fn as_ref(&self) -> &OsStr {
        self.0.as_ref()
    }
}
