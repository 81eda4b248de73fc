//! Patterns that choose functions: `name`, `module!name`, globs, `/regex/`.
use super::error::LocateError;
use super::functions::Function;
use regex::Regex;
use std::collections::HashSet;
use std::fmt;

#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    module: Option<Regex>,
    name: Name,
}

#[derive(Debug, Clone)]
enum Name {
    Exact(String),
    Match(Regex),
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Pattern, LocateError> {
        let failed = |why: String| LocateError::Pattern {
            pattern: text.to_owned(),
            why,
        };
        let (module, name) = match text.split_once('!') {
            Some((module, name)) if !text.starts_with('/') => (Some(module), name),
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
            Name::Match(regex(glob(name))?)
        } else {
            Name::Exact(name.to_owned())
        };
        let module = module.map(|m| regex(module_glob(m))).transpose()?;
        Ok(Pattern {
            text: text.to_owned(),
            module,
            name,
        })
    }

    /// `module` is the file name of the executable or library.
    pub fn matches(&self, module: &str, function: &Function) -> bool {
        if self.module.as_ref().is_some_and(|m| !m.is_match(module)) {
            return false;
        }
        let mut names = [&function.name, &function.raw_name]
            .into_iter()
            .chain(&function.aliases)
            .map(|n| unversioned(n));
        match &self.name {
            Name::Exact(wanted) => {
                names.any(|n| n == wanted) || last_segment(&function.name) == wanted
            }
            Name::Match(regex) => names.any(|n| regex.is_match(n)),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn unversioned(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn glob(text: &str) -> String {
    let mut out = String::from("^");
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

/// `bar` of `foo::bar<int>(int, char)`.
fn last_segment(name: &str) -> &str {
    let head = name.find(['(', '<']).map_or(name, |at| &name[..at]);
    head.rsplit("::").next().unwrap_or(head)
}

/// The names nearest to patterns that matched nothing, best first.
pub fn suggest<'a>(patterns: &[Pattern], names: impl Iterator<Item = &'a str>) -> Vec<String> {
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
        }
    }

    fn matches(pattern: &str, module: &str, name: &str) -> bool {
        Pattern::parse(pattern)
            .unwrap()
            .matches(module, &function(name))
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
        assert!(!matches("a.c", "nf", "abc"), "a dot is a dot");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        assert!(Pattern::parse("/(/").is_err() && Pattern::parse("nf!").is_err());
    }

    #[test]
    fn suggestions_come_from_near_names() {
        let patterns = [Pattern::parse("acl_mtach").unwrap()];
        let names = ["acl_match", "l2_input", "main"];
        assert_eq!(suggest(&patterns, names.into_iter()), ["acl_match"]);
    }
}
