//! Modules of a folder import each other in one direction: the siblings at each level form no circle.
use super::fence::{relative, rust_files};
use anyhow::{Result, ensure};
use hopscope_tests::{Suite, repository};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A folder, and the modules of a circle in it.
type Circle = (&'static str, &'static [&'static str]);

/// Crates whose folders have no circle but those named.
const CHECKED: &[(&str, &[Circle])] = &[
    ("measure/process/src", &[]),
    (
        "measure/probe/src",
        &[
            ("live", &["breakpoints", "error", "patch", "table"]),
            (
                "live",
                &[
                    "inside", "install", "leftover", "mapping", "reap", "remove", "retire",
                    "switch",
                ],
            ),
            ("locate", &["calls", "image"]),
        ],
    ),
    ("measure/event/src", &[]),
    ("measure/trace/src", &[]),
];

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::imports_have_no_circle", &[], no_circle);
}

type Module = Vec<String>;

fn no_circle() -> Result<()> {
    for (source, known) in CHECKED {
        let modules = modules(&repository().join(source))?;
        ensure!(
            modules.len() > 2,
            "{source}: only {} modules",
            modules.len()
        );
        let levels = levels(&modules);
        let mut found = BTreeSet::new();
        for (level, imports) in &levels {
            for circle in circles(imports) {
                found.insert((level.clone(), circle));
            }
        }
        let known: BTreeSet<_> = known
            .iter()
            .map(|(level, names)| {
                let names = names.iter().map(|n| (*n).to_owned());
                ((*level).to_owned(), names.collect::<BTreeSet<_>>())
            })
            .collect();
        ensure!(
            found == known,
            "{source}: circles of imports {found:?}, known are {known:?}"
        );
    }
    let circle = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")];
    let mut imports: Imports = BTreeMap::new();
    for (from, to) in circle {
        imports.entry(from.into()).or_default().insert(to.into());
    }
    ensure!(circles(&imports).len() == 1, "finds none");
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
    let mut levels: BTreeMap<String, Imports> = BTreeMap::new();
    for (from, code) in modules {
        for to in imported(from, code, modules) {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) {
                let level = levels.entry(from[..shared].join("::")).or_default();
                level.entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    levels
}

/// The modules that paths from `crate` and `super` in `code` lead to.
fn imported(from: &[String], code: &str, modules: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let mut all = BTreeSet::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let mut rest = &code[at..];
            let mut base = from.to_vec();
            if let Some(after) = rest.strip_prefix("crate::") {
                (base, rest) = (Vec::new(), after);
            }
            while let Some(after) = rest.strip_prefix("super::") {
                base.pop();
                rest = after;
            }
            follow(&base, rest, modules, &mut all);
        }
    }
    all.remove(from);
    all
}

/// Adds what a path, or the paths in its braces, lead to from `base`.
fn follow(
    base: &[String],
    path: &str,
    modules: &BTreeMap<Module, String>,
    all: &mut BTreeSet<Module>,
) {
    if let Some(inside) = path.strip_prefix('{') {
        let (mut depth, mut begin) = (0, 0);
        for (at, c) in inside.char_indices() {
            match c {
                ',' if depth == 0 => {
                    follow(base, inside[begin..at].trim(), modules, all);
                    begin = at + 1;
                }
                '}' if depth == 0 => {
                    follow(base, inside[begin..at].trim(), modules, all);
                    return;
                }
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
    let (name, rest) = path.split_at(end.unwrap_or(path.len()));
    let next: Module = base.iter().cloned().chain([name.to_owned()]).collect();
    match (modules.contains_key(&next), rest.strip_prefix("::")) {
        (true, Some(rest)) => follow(&next, rest, modules, all),
        (true, None) => drop(all.insert(next)),
        (false, _) => drop(all.insert(base.to_vec())),
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
