//! Modules of a folder import each other in one direction: the siblings at each level form no circle.
//! A name that is imported through a re-export is an import of the module that defines it, too.
use super::dependencies::folders;
use super::fence::{relative, rust_files};
use anyhow::{Result, ensure};
use hopscope_tests::Suite;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::imports_have_no_circle", &[], no_circle);
}

type Module = Vec<String>;

fn no_circle() -> Result<()> {
    for folder in folders()? {
        let source = folder.join("src");
        let modules = modules(&source)?;
        ensure!(!modules.is_empty(), "{}: no modules", source.display());
        for (level, imports) in levels(&modules) {
            let found = circles(&imports);
            ensure!(
                found.is_empty(),
                "{}: modules of `{level}` import each other: {found:?}",
                relative(&source)
            );
        }
    }
    finds_circles()
}

/// What the check itself can do.
fn finds_circles() -> Result<()> {
    let found = |modules: &[(&'static str, &'static str)]| {
        let path = |name: &'static str| {
            name.split("::")
                .filter(|n| !n.is_empty())
                .map(str::to_owned)
        };
        let modules = modules
            .iter()
            .map(|(name, code)| (path(name).collect(), (*code).to_owned()));
        let modules: BTreeMap<Module, String> = modules.collect();
        levels(&modules)
            .values()
            .map(|level| circles(level).len())
            .sum::<usize>()
    };
    let one = [
        ("a", "use crate::b::B;"),
        ("b", "use super::c;"),
        ("c", "crate::a::f()"),
    ];
    ensure!(found(&one) == 1, "none of three modules");
    ensure!(found(&one[..2]) == 0, "one where there is none");
    let inside = [
        ("x", ""),
        ("x::a", "use super::b::B;"),
        ("x::b", "use crate::x::a::{self, A};"),
    ];
    ensure!(found(&inside) == 1, "none below a module");
    let exported = [
        ("", "pub use a::A;\npub use b::{c::C, B as D};"),
        ("a", "use crate::D;"),
        ("b", "use crate::A;"),
    ];
    ensure!(found(&exported) == 1, "none through re-exports");
    Ok(())
}

/// Each module by its path, with the code that is no test.
fn modules(source: &Path) -> Result<BTreeMap<Module, String>> {
    let mut files = Vec::new();
    rust_files(source, &mut files)?;
    let root = relative(source);
    let mut modules = BTreeMap::new();
    for file in files {
        let path = relative(&file);
        let path = path.trim_start_matches(&root).trim_matches('/');
        let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let module: Module = path.split('/').map(str::to_owned).collect();
        if module.iter().any(|name| name == "tests") {
            continue;
        }
        let module = match path {
            "lib" | "main" => Vec::new(),
            _ => module,
        };
        modules.insert(module, code(&std::fs::read_to_string(&file)?));
    }
    Ok(modules)
}

/// Without comments, and up to the tests, which end a file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
    let lines = text.lines().map(|l| l.split("//").next().unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

type Imports = BTreeMap<String, BTreeSet<String>>;

/// For each folder, which of its modules import which of their siblings.
fn levels(modules: &BTreeMap<Module, String>) -> BTreeMap<String, Imports> {
    let exports = exports(modules);
    let mut levels: BTreeMap<String, Imports> = BTreeMap::new();
    for (from, code) in modules {
        for to in imported(from, code, modules, &exports) {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                let level = levels.entry(from[..shared].join("::")).or_default();
                level.entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    levels
}

/// A name in a module, and where the module has it from.
type Exports = BTreeMap<(Module, String), (Module, String)>;

/// What modules re-export from others.
fn exports(modules: &BTreeMap<Module, String>) -> Exports {
    let mut exports = Exports::new();
    for (from, code) in modules {
        for (at, _) in code.match_indices(" use ") {
            let before = code[..at]
                .rsplit(['\n', ';', '}'])
                .next()
                .unwrap_or("")
                .trim();
            if !before.starts_with("pub") {
                continue;
            }
            let path = code[at + " use ".len()..].split(';').next().unwrap_or("");
            let (base, path) = start(from, path.trim());
            follow(&base, path, modules, &mut |module, name, alias| {
                let key = (from.clone(), alias.to_owned());
                exports.insert(key, (module, name.to_owned()));
            });
        }
    }
    exports
}

/// The modules that paths from `crate` and `super` in `code` lead to.
fn imported(
    from: &[String],
    code: &str,
    modules: &BTreeMap<Module, String>,
    exports: &Exports,
) -> BTreeSet<Module> {
    let mut all = BTreeSet::new();
    for prefix in ["crate::", "super::"] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let (base, path) = start(from, &code[at..]);
            follow(&base, path, modules, &mut |module, name, _| {
                let mut place = (module, name.to_owned());
                // Re-exports of re-exports, which may name each other.
                for _ in 0..8 {
                    all.insert(place.0.clone());
                    match exports.get(&place) {
                        Some(next) => place = next.clone(),
                        None => break,
                    }
                }
            });
        }
    }
    all.remove(from);
    all
}

/// Where a path starts, and the rest of it.
fn start<'a>(from: &[String], path: &'a str) -> (Module, &'a str) {
    let mut base = from.to_vec();
    let mut rest = path;
    if let Some(after) = rest.strip_prefix("crate::") {
        (base, rest) = (Vec::new(), after);
    }
    while let Some(after) = rest.strip_prefix("super::") {
        base.pop();
        rest = after;
    }
    (base, rest.strip_prefix("self::").unwrap_or(rest))
}

/// Gives what a path, or the paths in its braces, lead to from `base`: a module, the name in it (none: the module
/// itself), and what it is called from now on.
fn follow(
    base: &[String],
    path: &str,
    modules: &BTreeMap<Module, String>,
    found: &mut impl FnMut(Module, &str, &str),
) {
    if let Some(inside) = path.strip_prefix('{') {
        let (mut depth, mut begin) = (0, 0);
        for (at, c) in inside.char_indices() {
            match c {
                ',' | '}' if depth == 0 => {
                    follow(base, inside[begin..at].trim(), modules, found);
                    begin = at + 1;
                    if c == '}' {
                        return;
                    }
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let word = |text: &str| {
        text.find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(text.len())
    };
    let (name, rest) = path.split_at(word(path));
    let next: Module = base.iter().cloned().chain([name.to_owned()]).collect();
    let alias = rest
        .strip_prefix(" as ")
        .map_or(name, |alias| &alias[..word(alias)]);
    match (modules.contains_key(&next), rest.strip_prefix("::")) {
        (true, Some(rest)) => follow(&next, rest, modules, found),
        (true, None) => found(next, "", alias),
        (false, _) => found(base.to_vec(), name, alias),
    }
}

/// Groups of modules each of which is reached from each other one.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = next.pop() {
            for to in imports.get(&module).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        seen
    };
    let all: BTreeMap<_, _> = imports.keys().map(|m| (m.clone(), reached(m))).collect();
    let circle = |module: &String| {
        let ours = all[module].iter();
        let back = ours.filter(|to| all.get(*to).is_some_and(|r| r.contains(module)));
        back.cloned().collect::<BTreeSet<_>>()
    };
    all.keys().map(circle).filter(|c| c.len() > 1).collect()
}
