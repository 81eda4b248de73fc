//! The page's own script and style. Its modules are plain ES modules that a browser could load one
//! by one; here they become one script, because a page in one file has no place to load from.

pub(crate) const STYLE: &str = include_str!("../../web/style.css");

/// Each after what it imports.
const MODULES: &[&str] = &[
    include_str!("../../web/columns.js"),
    include_str!("../../web/lane.js"),
    include_str!("../../web/words.js"),
    include_str!("../../web/colours.js"),
    include_str!("../../web/model.js"),
    include_str!("../../web/draw.js"),
    include_str!("../../web/timeline.js"),
    include_str!("../../web/facts.js"),
    include_str!("../../web/search.js"),
    include_str!("../../web/tails.js"),
    include_str!("../../web/flame.js"),
    include_str!("../../web/main.js"),
];

/// All modules in one: without their imports, and with nothing exported.
pub(crate) fn script() -> String {
    let lines = MODULES.iter().flat_map(|module| module.lines());
    let own = lines.filter(|line| !line.starts_with("import "));
    own.map(|line| line.strip_prefix("export ").unwrap_or(line).to_owned() + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// In one script all top-level names share one scope.
    #[test]
    fn no_name_is_declared_twice() {
        let mut seen = BTreeSet::new();
        for line in script().lines() {
            let mut words = line.split([' ', '(', '=', ';']);
            if matches!(
                words.next(),
                Some("const" | "let" | "function" | "class" | "async")
            ) {
                let name = words
                    .find(|w| !matches!(*w, "" | "function"))
                    .unwrap_or_default();
                assert!(seen.insert(name.to_owned()), "{name} is declared twice");
            }
        }
        assert!(seen.len() > 20, "only {} names found", seen.len());
    }

    /// Every name must reach the page as text: what parses markup is not used at all.
    #[test]
    fn nothing_is_parsed_as_markup_or_code() {
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "Function(",
        ] {
            assert!(!script().contains(word), "{word}");
        }
        for outside in [
            "http:",
            "https:",
            "fetch(",
            "XMLHttpRequest",
            "WebSocket",
            "url(",
            "@import",
        ] {
            let there = script().replace("http://www.w3.org/2000/svg", "") + STYLE;
            assert!(!there.contains(outside), "{outside}");
        }
        assert!(!script().contains("</script") && !STYLE.contains("</style"));
    }
}
