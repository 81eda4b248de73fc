//! Patterns that choose functions: `name`, `module!name`, globs, `/regex/`.
use super::error::LocateError;
use super::functions::Function;
use regex::Regex;
use std::collections::HashSet;
use std::fmt;

/// What chooses where functions were inlined begins with it.
pub const INLINED: &str = "inlined:";
/// What chooses functions with what they call through pointers begins with it.
pub const CALLS: &str = "calls:";

#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    module: Option<Module>,
    name: Name,
}

#[derive(Debug, Clone)]
enum Module {
    /// By the last part of its path.
    Named { text: String, regex: Regex },
    /// This very path, as the process names it.
    At(String),
}

#[derive(Debug, Clone)]
enum Name {
    Exact(String),
    Glob(Regex),
    Match(Regex),
}

impl Pattern {
    pub fn parse_all(texts: &[String]) -> Result<Vec<Pattern>, LocateError> {
        texts.iter().map(|text| Pattern::parse(text)).collect()
    }

    pub fn parse(text: &str) -> Result<Pattern, LocateError> {
        let failed = |why: String| LocateError::Pattern {
            pattern: text.to_owned(),
            why,
        };
        for prefix in [INLINED, CALLS] {
            if behind(prefix, text).is_some() {
                return Err(failed(format!(
                    "{prefix} is for -f of record and top alone"
                )));
            }
        }
        if caller_of(text).is_some() {
            return Err(failed(
                "CALLER->FUNCTION is for -f of record and top alone".into(),
            ));
        }
        // A module may be a path, and its function a regular expression.
        let is_regex = text.starts_with('/') && text.ends_with('/') && !text.contains("!/");
        let (module, name) = match text.split_once('!') {
            Some((module, name)) if !is_regex => (Some(module), name),
            _ => (None, text),
        };
        if name.is_empty() {
            return Err(failed("the function's name is empty; use * for all".into()));
        }
        let regex =
            |r: String| Regex::new(&r).map_err(|e| failed(e.to_string().replace('\n', " ")));
        let name = if let Some(inner) = name.strip_prefix('/').and_then(|n| n.strip_suffix('/')) {
            Name::Match(regex(inner.to_owned())?)
        } else if name.contains(['*', '?']) {
            Name::Glob(regex(glob(name))?)
        } else {
            Name::Exact(name.to_owned())
        };
        let named = |m: &str| {
            let (text, regex) = (m.to_owned(), regex(module_glob(m))?);
            Ok(Module::Named { text, regex })
        };
        let module = module.map(named).transpose()?;
        Ok(Pattern {
            text: text.to_owned(),
            module,
            name,
        })
    }

    /// The same of the module at this path alone.
    pub(super) fn at(&self, path: &str) -> Pattern {
        Pattern {
            module: Some(Module::At(path.to_owned())),
            ..self.clone()
        }
    }

    /// The module's name as it is written, where it has no wildcards.
    pub(super) fn exact_module(&self) -> Option<&str> {
        match self.module.as_ref()? {
            Module::Named { text, .. } if !text.contains(['*', '?']) => Some(text),
            _ => None,
        }
    }

    /// A function's name, without wildcards.
    pub fn is_one_name(&self) -> bool {
        matches!(self.name, Name::Exact(_))
    }

    /// `module` is the path of the executable or library, or its last part.
    pub fn matches_module(&self, module: &str) -> bool {
        match &self.module {
            None => true,
            Some(Module::Named { regex, .. }) => regex.is_match(last_part(module)),
            Some(Module::At(path)) => path == module,
        }
    }

    /// `module` as for [`Pattern::matches_module`].
    pub fn matches(&self, module: &str, function: &Function) -> bool {
        let names = [&function.name, &function.raw_name].into_iter();
        let names = names.chain(&function.aliases).map(String::as_str);
        self.matches_module(module) && self.matches_any(names, &function.name)
    }

    /// Of what is no function of its own.
    pub fn matches_name(&self, module: &str, name: &str, raw_name: &str) -> bool {
        self.matches_module(module) && self.matches_any([name, raw_name].into_iter(), name)
    }

    /// Any of the `names`, or the path that the demangled one has.
    fn matches_any<'n>(&self, names: impl Iterator<Item = &'n str>, name: &str) -> bool {
        let mut names = names.map(unversioned);
        match &self.name {
            Name::Exact(wanted) => names.any(|n| n == wanted) || ends_path(name, wanted),
            Name::Glob(regex) => names.any(|n| regex.is_match(n)) || regex.is_match(&path_of(name)),
            Name::Match(regex) => names.any(|n| regex.is_match(n)),
        }
    }
}

/// `inlined:module!name` or `module!inlined:name`: the pattern in it. A namespace of that name is none.
pub fn behind(prefix: &str, text: &str) -> Option<String> {
    let rest = |text: &str| {
        let rest = text.strip_prefix(prefix)?;
        (!rest.starts_with(':')).then(|| rest.to_owned())
    };
    rest(text).or_else(|| {
        let (module, name) = text.split_once('!').filter(|(m, _)| !m.contains("->"))?;
        Some(format!("{module}!{}", rest(name)?))
    })
}

/// `module->rest`: calls that one module makes to what the rest names. Captures, in parentheses, have arrows of their own.
pub fn caller_of(text: &str) -> Option<(&str, &str)> {
    let is_regex = text.starts_with('/') && text.ends_with('/') && !text.contains('!');
    let names = text.split('(').next().unwrap_or_default();
    let (module, _) = names.split_once("->")?;
    let is_operator = module.ends_with("operator");
    let names_one = !is_regex && !is_operator && !module.is_empty();
    names_one.then(|| (module, &text[module.len() + 2..]))
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn unversioned(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn glob(text: &str) -> String {
    // Names are of any characters: a wildcard stands for a line end, too.
    let mut out = String::from("(?s)^");
    for c in text.chars() {
        match c {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out + "$"
}

/// `libc` means `libc.so.6` too.
fn module_glob(text: &str) -> String {
    let whole = glob(text);
    let open = whole.trim_end_matches('$');
    format!(r"{open}(\.so[.0-9]*)?$")
}

/// `foo::bar` of `void foo::bar<int>(int, char) const`: no return type, no arguments.
fn path_of(name: &str) -> String {
    let mut path = String::new();
    let mut depth = 0u32;
    let mut previous = ' ';
    let mut rest = name.char_indices();
    while let Some((at, c)) = rest.next() {
        let operator = path.ends_with("operator") || path.ends_with("operator<");
        match c {
            '<' if depth > 0 || !operator => {
                // A turbofish, or `<impl Trait for Type>` between two segments.
                if depth == 0 && path.ends_with("::") {
                    path.truncate(path.len() - 2);
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= u32::from(previous != '-'),
            _ if depth > 0 => {}
            '(' if operator => {
                path.push_str("()");
                rest.next();
            }
            '(' if name[at..].starts_with(ANONYMOUS) => {
                path.push_str(ANONYMOUS);
                rest.nth(ANONYMOUS.len() - 2);
            }
            '(' => break,
            // `operator<< <char>`
            ' ' if name[at..].starts_with(" <") => {}
            ' ' if !operator => path.clear(),
            c => path.push(c),
        }
        previous = c;
    }
    path.trim_start_matches("::").to_owned()
}

const ANONYMOUS: &str = "(anonymous namespace)";

/// Whether `wanted` is the whole path or its last segments.
fn ends_path(name: &str, wanted: &str) -> bool {
    // Cheap for most of a hundred thousand names.
    if !name.contains(wanted) {
        return false;
    }
    let path = path_of(name);
    let head = path.strip_suffix(wanted);
    head.is_some_and(|head| head.is_empty() || head.ends_with("::"))
}

/// What may have been meant by patterns that matched nothing, to be put behind that message:
/// empty, or `; …`. `modules` are file names with their functions.
pub fn hint<'a>(
    patterns: &[Pattern],
    modules: impl Iterator<Item = (&'a str, &'a [Function])> + Clone,
) -> String {
    let missing = patterns.iter().find(|p| {
        matches!(p.module, Some(Module::Named { .. }))
            && !modules.clone().any(|(name, _)| p.matches_module(name))
    });
    if let Some(pattern) = missing {
        let asked = pattern.text.split('!').next().unwrap_or_default();
        let mut there: Vec<&str> = modules.map(|(name, _)| name).collect();
        let more = there.len().saturating_sub(MODULES_NAMED);
        there.truncate(MODULES_NAMED);
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        return format!(
            "; no module is named {asked}; modules: {}{more}",
            there.join(", ")
        );
    }
    let names = modules
        .flat_map(|(_, functions)| functions)
        .map(|f| f.name.as_str());
    match nearest(patterns, names) {
        none if none.is_empty() => String::new(),
        nearest => format!("; the nearest names are: {}", nearest.join(", ")),
    }
}

/// The executable comes first, then what it links: enough to see the right one.
const MODULES_NAMED: usize = 6;

/// Best first.
fn nearest<'a>(patterns: &[Pattern], names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted: Vec<&str> = patterns
        .iter()
        .map(|p| {
            p.text
                .rsplit('!')
                .next()
                .unwrap_or(&p.text)
                .trim_matches(['*', '/', '?'])
        })
        .collect();
    let mut scored: Vec<(usize, &str)> = Vec::new();
    let mut seen = HashSet::new();
    for name in names.filter(|n| seen.insert(*n)) {
        let best = wanted.iter().filter_map(|w| distance(w, name)).min();
        scored.extend(best.map(|d| (d, name)));
    }
    scored.sort();
    scored
        .into_iter()
        .take(3)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Edits between two names, `None` when they have little in common.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    if wanted.len() >= 3 && name.contains(wanted) {
        return Some(0);
    }
    let limit = wanted.len() / 3 + 1;
    if wanted.len().abs_diff(name.len()) > limit {
        return None;
    }
    let (a, b) = (wanted.as_bytes(), name.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    (row[b.len()] <= limit).then_some(row[b.len()])
}

#[cfg(test)]
mod tests {
    use super::super::functions::NameSource;
    use super::*;

    fn function(name: &str) -> Function {
        Function {
            name: name.into(),
            raw_name: name.into(),
            aliases: vec!["other@@V1".into()],
            svma: 0,
            size: 1,
            source: NameSource::Symtab,
            fragments: vec![],
            has_lsda: false,
            has_fde: true,
            ifunc: false,
            has_frame_at_entry: false,
        }
    }

    fn matches(pattern: &str, module: &str, name: &str) -> bool {
        Pattern::parse(pattern)
            .unwrap()
            .matches(module, &function(name))
    }

    #[test]
    fn wildcards_stand_for_any_character() {
        let name = "acl\nmatch";
        assert!(matches("acl*", "nf", name) && matches("acl?match", "nf", name));
        assert!(matches("n?f!*", "n\nf", name) && !matches("acl", "nf", name));
    }

    #[test]
    fn forms() {
        assert!(matches("acl_match", "nf", "acl_match") && !matches("acl", "nf", "acl_match"));
        assert!(matches("acl_*", "nf", "acl_match") && matches("acl_mat?h", "nf", "acl_match"));
        assert!(
            matches("/^acl_(match|in)$/", "nf", "acl_in") && !matches("/^acl$/", "nf", "acl_in")
        );
        assert!(matches("nf!*", "nf", "x") && !matches("nf!*", "libc.so.6", "x"));
        assert!(
            matches("libc!malloc", "libc.so.6", "malloc") && matches("lib*!m", "libm.so.6", "m")
        );
        assert!(matches("other", "nf", "x"), "an alias, without its version");
        assert!(matches("bar", "nf", "foo::bar<int>(int, char)"));
        assert!(matches("foo::bar", "nf", "void foo::bar<int>(int)"));
        assert!(!matches("oo::bar", "nf", "foo::bar(int)") && !matches("int", "nf", "bar(int)"));
        assert!(
            matches("foo::*", "nf", "void foo::bar<int>(int)")
                && matches("*::bar", "nf", "foo::bar(int)")
        );
        assert!(!matches("a.c", "nf", "abc"), "a dot is a dot");
        assert!(matches("nf!*", "/usr/bin/nf", "x") && !matches("bin!*", "/usr/bin/nf", "x"));
    }

    #[test]
    fn a_path_is_a_module_and_not_a_regular_expression() {
        let module = |text: &str| {
            let pattern = Pattern::parse(text).unwrap();
            pattern.exact_module().map(str::to_owned)
        };
        assert_eq!(module("/usr/bin/nf!acl_*").as_deref(), Some("/usr/bin/nf"));
        assert_eq!(module("/opt/nf!/^acl/").as_deref(), Some("/opt/nf"));
        assert_eq!(module("/a!b/"), None);
        assert_eq!(module("n?!*"), None);
        let here = Pattern::parse("/opt/nf!/^acl/").unwrap().at("/opt/nf-2");
        assert!(here.matches("/opt/nf-2", &function("acl_in")));
        assert!(!here.matches("/lib/nf-2", &function("acl_in")));
        assert!(!here.matches("/opt/nf-2", &function("nat_in")));
    }

    #[test]
    fn paths() {
        let cases = [
            ("main", "main"),
            ("foo::bar(int) const", "foo::bar"),
            ("void foo::bar<a<b>, (c)1>(int (*)(char))", "foo::bar"),
            (
                "(anonymous namespace)::Acl::match(int)",
                "(anonymous namespace)::Acl::match",
            ),
            (
                "std::ostream& operator<< <char>(std::ostream&, char)",
                "operator<<",
            ),
            ("foo::operator()(int)", "foo::operator()"),
            ("foo::operator->()", "foo::operator->"),
            ("foo::operator bool() const", "foo::operator bool"),
            ("<nf::Acl as nf::Module>::run", "run"),
            ("nf::acl::<impl nf::Acl>::run", "nf::acl::run"),
            ("nf::run::<u32>", "nf::run"),
            ("nf::run::{{closure}}", "nf::run::{{closure}}"),
            ("f<(unclosed", "f"),
        ];
        for (name, path) in cases {
            assert_eq!(path_of(name), path, "{name}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        assert!(Pattern::parse("/(/").is_err() && Pattern::parse("nf!").is_err());
    }

    #[test]
    fn suggestions_come_from_near_names() {
        let patterns = [Pattern::parse("acl_mtach").unwrap()];
        let names = ["acl_match", "l2_input", "main"];
        assert_eq!(nearest(&patterns, names.into_iter()), ["acl_match"]);
    }

    /// `redis-server` is a link to `redis-check-rdb` on Debian.
    #[test]
    fn a_module_that_is_not_there_is_named() {
        let patterns = [Pattern::parse("redis-server!*").unwrap()];
        let there: [(&str, &[Function]); 2] = [("redis-check-rdb", &[]), ("libc.so.6", &[])];
        assert_eq!(
            hint(&patterns, there.into_iter()),
            "; no module is named redis-server; modules: redis-check-rdb, libc.so.6"
        );
    }
}
