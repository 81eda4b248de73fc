//! `--method` of `record` and `top`.
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hopscope_probe::plan::Method;

const ALL: [(&str, Method, &str); 4] = [
    (
        "auto",
        Method::Auto,
        "By a jump at the entry; where it has no room there, by GOT slots; what was named and can be measured neither way, as with calls",
    ),
    ("jump", Method::Jump, "By a jump at the function's entry"),
    (
        "got",
        Method::Got,
        "By the GOT slots of modules that call it; the function stays as it is",
    ),
    (
        "calls",
        Method::Calls,
        "Where it is called by its name, in the functions that call it; it stays as it is",
    ),
];

pub fn method() -> impl TypedValueParser<Value = Method> {
    let values = ALL.map(|(word, _, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(values).map(|word| {
        let named = ALL.into_iter().find(|(known, ..)| *known == word);
        named.map_or_else(Method::default, |(_, method, _)| method)
    })
}
