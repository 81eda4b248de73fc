//! Where in an expression the error is. libpcap says only what it is.
use super::libpcap;
use std::ffi::{CString, c_int};

/// A number that libpcap refuses as soon as it reads it, before it asks whether one may stand there.
const STOP: &str = "99999999999";

/// All names that libpcap's grammar has for the link layer.
const LINK_NAMES: &[&str] = &["ether", "link", "ppp", "slip", "fddi", "tr", "wlan"];

/// Byte offset of the token at which `expression` goes wrong; its length where something is missing
/// at the end. `said` is libpcap's error for the whole.
pub(super) fn of(expression: &str, linktype: c_int, said: &str) -> usize {
    let error = |text: String| {
        let text = CString::new(text).ok()?;
        libpcap::compile(&text, linktype).err()
    };
    let tokens = tokens(expression);
    // The shortest beginning that fails for the same reason. A syntax error has no reason: a
    // beginning alone mostly is one.
    let syntax = said.contains("syntax error");
    if !syntax
        && let Some((start, _)) = tokens
            .iter()
            .find(|(_, end)| error(expression[..*end].to_owned()).as_deref() == Some(said))
    {
        return *start;
    }
    // A parser that reads the stop after a beginning has taken all of that beginning.
    let stopped = error(STOP.to_owned());
    tokens
        .iter()
        .find(|(_, end)| error(format!("{} {STOP}", &expression[..*end])) != stopped)
        .map_or(expression.len(), |(start, _)| *start)
}

/// Where bytes of the link header are asked for, as in `ether[0]`.
pub(super) fn of_link_bytes(expression: &str) -> Option<usize> {
    let tokens = tokens(expression);
    tokens.windows(2).find_map(|pair| {
        let (word, next) = (&expression[pair[0].0..pair[0].1], &expression[pair[1].0..]);
        // A minus before it is part of the piece.
        let name = word.rsplit(|c: char| !c.is_alphanumeric()).next()?;
        (next.starts_with('[') && LINK_NAMES.contains(&name)).then(|| pair[0].1 - name.len())
    })
}

/// Begin and end of each piece that may be cut off: words with all that addresses and ranges are
/// written with, single brackets, runs of operators.
fn tokens(expression: &str) -> Vec<(usize, usize)> {
    #[derive(PartialEq, Clone, Copy)]
    enum Kind {
        Space,
        Word,
        Operator,
        Bracket,
    }
    let kind = |c: char| match c {
        c if c.is_whitespace() => Kind::Space,
        '(' | ')' | '[' | ']' => Kind::Bracket,
        '!' | '<' | '>' | '=' | '&' | '|' | '^' | '+' | '*' | '%' => Kind::Operator,
        _ => Kind::Word,
    };
    let mut tokens: Vec<(usize, usize)> = Vec::new();
    let mut before = Kind::Space;
    for (at, c) in expression.char_indices() {
        let (kind, end) = (kind(c), at + c.len_utf8());
        match tokens.last_mut() {
            _ if kind == Kind::Space => {}
            Some(last) if kind == before && kind != Kind::Bracket => last.1 = end,
            _ => tokens.push((at, end)),
        }
        before = kind;
    }
    tokens
}
