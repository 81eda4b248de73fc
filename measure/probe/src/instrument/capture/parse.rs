//! What to time and what to take along: `acl_in(frame->n, frame->pkts[0..n].seq, return)`.
use super::Scalar;
use crate::locate::module_names::ModuleNames;
use crate::locate::pattern::{CALLS, INLINED, Pattern, behind, caller_of};
use crate::locate::{Function, LocateError};
use std::fmt;

/// Functions, and what their probes take along.
#[derive(Debug, Clone)]
pub struct Selection {
    pub pattern: Pattern,
    /// The text as one pattern: `foo(int)` may be a name as demangled.
    whole: Option<Pattern>,
    pub captures: Vec<Wanted>,
    /// `inlined:`: not functions, but where they were inlined into others.
    pub inlined: bool,
    /// `calls:`: functions, and what they call.
    pub calls: Option<CallsOf>,
    /// Only what these modules call.
    pub callers: Option<Pattern>,
}

/// Which calls of a function are timed where they are made.
#[derive(Debug, Clone)]
pub enum CallsOf {
    /// `calls:f`
    Pointers,
    /// `calls:f->g`: those of functions with a name, too, if it matches.
    Named(Pattern),
}

/// One capture, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub text: String,
    pub what: Expr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    Return,
    /// `@instructions`: what is counted from a call's entry to its end.
    Counter(String),
    /// By names: a parameter, then members and elements.
    Path {
        root: String,
        steps: Vec<Step>,
    },
    /// By register and offset.
    Raw(Raw),
    /// `be32(frame->packets[0..n].data+44)`: what lies behind a pointer, whatever its type.
    Cast {
        scalar: Scalar,
        root: String,
        steps: Vec<Step>,
        offset: i32,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Arrow(String),
    Dot(String),
    Index(u32),
    /// `[0..to]`
    Slice(Box<Limit>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limit {
    Number(u64),
    Value(Expr),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raw {
    /// `arg1` … `arg6`, from 0.
    Argument(usize),
    /// `u32(arg1+0x10)`, and with `[0..arg2]` that many behind one another.
    Load {
        scalar: Scalar,
        at: Box<Raw>,
        offset: i32,
        elements: Option<Box<Limit>>,
    },
}

impl Selection {
    pub fn of_pattern(pattern: Pattern) -> Selection {
        Selection {
            pattern,
            whole: None,
            captures: Vec::new(),
            inlined: false,
            calls: None,
            callers: None,
        }
    }

    /// All of the text is names, whatever parentheses it has.
    pub fn without_captures(text: &str) -> Result<Selection, LocateError> {
        if let Some(rest) = behind(CALLS, text) {
            return Selection::of_calls(&rest);
        }
        if let Some((callers, rest)) = caller_of(text) {
            return Selection::without_captures(rest)?.of_callers(callers, text);
        }
        if text.contains("(@") {
            return Err(LocateError::Pattern {
                pattern: text.to_owned(),
                why: "counters are read in recordings, of functions that are not inlined".into(),
            });
        }
        if let Some(pattern) = behind(INLINED, text) {
            return Ok(Selection {
                inlined: true,
                ..Selection::of_pattern(Pattern::parse(&pattern)?)
            });
        }
        Ok(Selection::of_pattern(Pattern::parse(text)?))
    }

    fn of_calls(text: &str) -> Result<Selection, LocateError> {
        let (caller, calls) = match caller_of(text) {
            Some((caller, callee)) => (caller, CallsOf::Named(Pattern::parse(callee)?)),
            None => (text, CallsOf::Pointers),
        };
        let failed = |why: &str| LocateError::Pattern {
            pattern: format!("{CALLS}{text}"),
            why: why.to_owned(),
        };
        if behind(INLINED, caller).is_some() {
            return Err(failed(
                "what is inlined calls as the function that it is in",
            ));
        }
        if !Selection::parse(caller)?.captures.is_empty() {
            return Err(failed(
                "what is taken along of a function goes into a -f of its own, beside this one",
            ));
        }
        Ok(Selection {
            calls: Some(calls),
            ..Selection::of_pattern(Pattern::parse(caller)?)
        })
    }

    fn of_callers(self, module: &str, text: &str) -> Result<Selection, LocateError> {
        let failed = |why: &str| {
            Err(LocateError::Pattern {
                pattern: text.to_owned(),
                why: why.to_owned(),
            })
        };
        if self.inlined {
            return failed("what is inlined is not called by a module");
        }
        if self.calls.is_some() {
            return failed("calls: is of a function that calls, whoever calls it");
        }
        if self.callers.is_some() {
            return failed("write MODULE->FUNCTION, with one ->");
        }
        Ok(Selection {
            callers: Some(Pattern::parse(&format!("{module}!*"))?),
            ..self
        })
    }

    pub fn parse(text: &str) -> Result<Selection, LocateError> {
        if let Some(rest) = behind(CALLS, text) {
            return Selection::of_calls(&rest);
        }
        if let Some((callers, rest)) = caller_of(text) {
            return Selection::parse(rest)?.of_callers(callers, text);
        }
        if behind(INLINED, text).is_some() {
            return Selection::without_captures(text);
        }
        let Some((head, inside)) = split(text) else {
            return Ok(Selection::of_pattern(Pattern::parse(text)?));
        };
        let failed = |why: String| LocateError::Pattern {
            pattern: text.to_owned(),
            why,
        };
        let captures = parts(inside)
            .map(|part| Wanted::parse(part.trim()).map_err(failed))
            .collect::<Result<Vec<_>, _>>();
        let whole = Pattern::parse(text).ok();
        let captures = match (captures, &whole) {
            (Ok(captures), _) => captures,
            // No capture, then: a name as C++ has them, or an error that shows.
            (Err(e), _) if !inside.contains(['*', '&', ':', '<']) => return Err(e),
            (Err(_), _) => {
                return Ok(Selection::of_pattern(Pattern::parse(text)?));
            }
        };
        Ok(Selection {
            pattern: Pattern::parse(head)?,
            whole,
            captures,
            inlined: false,
            calls: None,
            callers: None,
        })
    }

    /// Of the modules that its patterns name.
    ///
    /// # Errors
    /// When a name may mean several modules.
    pub fn resolved(&self, names: &ModuleNames) -> Result<Selection, LocateError> {
        Ok(Selection {
            pattern: names.resolve(&self.pattern)?,
            whole: self.whole.as_ref().map(|w| names.resolve(w)).transpose()?,
            captures: self.captures.clone(),
            inlined: self.inlined,
            calls: self.calls.clone(),
            callers: self
                .callers
                .as_ref()
                .map(|c| names.resolve(c))
                .transpose()?,
        })
    }

    /// Names of the counters that it asks for.
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        self.captures.iter().filter_map(|w| match &w.what {
            Expr::Counter(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The captures of a function that this selects.
    pub fn of(&self, module: &str, function: &Function) -> Option<&[Wanted]> {
        if self.inlined {
            return None;
        }
        let is_a_name = |whole: &Pattern| whole.matches(module, function);
        if self.whole.as_ref().is_some_and(is_a_name) {
            return Some(&[]);
        }
        let selected = self.pattern.matches(module, function);
        selected.then_some(self.captures.as_slice())
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(callers) = &self.callers {
            let text = callers.to_string();
            write!(f, "{}->", text.strip_suffix("!*").unwrap_or(&text))?;
        }
        if self.inlined {
            f.write_str(INLINED)?;
        }
        if self.calls.is_some() {
            f.write_str(CALLS)?;
        }
        self.pattern.fmt(f)?;
        match &self.calls {
            Some(CallsOf::Named(callee)) => write!(f, "->{callee}"),
            Some(CallsOf::Pointers) | None => Ok(()),
        }
    }
}

/// The pattern and the text in its parentheses.
fn split(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_suffix(')')?;
    // A regular expression has its own parentheses; what begins like one may be a path.
    let open = match inside.rfind("/(") {
        Some(end) if text.starts_with('/') => end + 1,
        None if text.starts_with('/') && !text.contains('!') => return None,
        _ => inside.find('(')?,
    };
    (open > 0).then(|| (&text[..open], &inside[open + 1..]))
}

/// Split at commas outside parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
}

impl Wanted {
    /// As it is shown: an array without its bounds.
    pub fn name(&self) -> String {
        let text = &self.text;
        let Some(dots) = text.find("..") else {
            return match self.what {
                Expr::Return => "return".into(),
                _ => text.clone(),
            };
        };
        let open = text[..dots].rfind('[').unwrap_or(dots);
        // A bound may hold brackets itself.
        let mut depth = 0;
        let close = text[open..].find(|c| {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        match close {
            Some(close) => format!("{}[]{}", &text[..open], &text[open + close + 1..]),
            None => text.clone(),
        }
    }

    pub fn parse(text: &str) -> Result<Wanted, String> {
        let mut rest = Rest { text };
        let what = rest.expression()?;
        if !rest.text.is_empty() {
            return Err(format!("{text:?}: unexpected {:?}", rest.text));
        }
        Ok(Wanted {
            text: text.to_owned(),
            what,
        })
    }
}

struct Rest<'a> {
    text: &'a str,
}

impl<'a> Rest<'a> {
    fn take(&mut self, token: &str) -> bool {
        let text = self.text.trim_start();
        match text.strip_prefix(token) {
            Some(rest) => {
                self.text = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        match self.take(token) {
            true => Ok(()),
            false => Err(format!("{token:?} is missing before {:?}", self.text)),
        }
    }

    fn word(&mut self) -> Result<&'a str, String> {
        let text = self.text.trim_start();
        let end = text
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        if word.is_empty() {
            return Err(match text.is_empty() {
                true => "a name is missing at the end; write PARAMETER, PARAMETER->MEMBER, \
                         ARRAY[0..N], return, arg1 or u32(arg1+0x10)"
                    .into(),
                false => format!("a name is missing before {text:?}"),
            });
        }
        self.text = rest.trim_start();
        Ok(word)
    }

    fn number(&mut self) -> Result<u64, String> {
        let word = self.word()?;
        let parsed = match word.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => word.parse(),
        };
        parsed.map_err(|_| format!("{word:?} is not a number"))
    }

    fn expression(&mut self) -> Result<Expr, String> {
        if self.take("@") {
            return self.counter().map(Expr::Counter);
        }
        let word = self.word()?;
        if word == "return" || word == "ret" {
            return Ok(Expr::Return);
        }
        if let Some(scalar) = scalar(word)
            && self.take("(")
        {
            return self.load(scalar);
        }
        if let Some(argument) = argument(word)? {
            return Ok(Expr::Raw(argument));
        }
        let (root, steps) = self.path(word)?;
        Ok(Expr::Path { root, steps })
    }

    /// Behind the `@`; its name may have `-` in it.
    fn counter(&mut self) -> Result<String, String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = self.text.find(|c| !is_name(c)).unwrap_or(self.text.len());
        let (name, rest) = self.text.split_at(end);
        if name.is_empty() {
            return Err("the name of a counter is missing behind @, as in @instructions".into());
        }
        self.text = rest.trim_start();
        Ok(name.to_owned())
    }

    fn path(&mut self, word: &str) -> Result<(String, Vec<Step>), String> {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("{word:?} is no name"));
        }
        let mut steps = Vec::new();
        loop {
            if self.take("->") {
                steps.push(Step::Arrow(self.word()?.to_owned()));
            } else if !self.text.starts_with("..") && self.take(".") {
                steps.push(Step::Dot(self.word()?.to_owned()));
            } else if self.take("[") {
                steps.push(self.index()?);
                self.expect("]")?;
            } else {
                break;
            }
        }
        if steps.iter().filter(|s| matches!(s, Step::Slice(_))).count() > 1 {
            return Err("only one [0..N] can be captured".into());
        }
        Ok((word.to_owned(), steps))
    }

    fn index(&mut self) -> Result<Step, String> {
        let index = self.number()?;
        if !self.take("..") {
            let index = u32::try_from(index).map_err(|_| format!("[{index}] is too far"))?;
            return Ok(Step::Index(index));
        }
        if index != 0 {
            return Err(format!("[{index}..]: ranges begin at 0"));
        }
        Ok(Step::Slice(Box::new(self.limit()?)))
    }

    fn limit(&mut self) -> Result<Limit, String> {
        match self.text.starts_with(|c: char| c.is_ascii_digit()) {
            true => Ok(Limit::Number(self.number()?)),
            false => match self.expression()? {
                Expr::Return => Err("the returned value is not known at the entry".into()),
                Expr::Counter(_) => Err("a counter is no number of elements".into()),
                value => Ok(Limit::Value(value)),
            },
        }
    }

    /// Behind the `(` of a type.
    fn load(&mut self, scalar: Scalar) -> Result<Expr, String> {
        let word = self.word()?;
        let inner = match self::scalar(word) {
            Some(inner) if self.take("(") => match self.load(inner)? {
                Expr::Raw(raw) => Some(raw),
                _ => return Err("only arg1 to arg6 take more than one u64(…) around them".into()),
            },
            _ => argument(word)?,
        };
        let Some(at) = inner else {
            let (root, steps) = self.path(word)?;
            let offset = self.offset()?;
            return Ok(Expr::Cast {
                scalar,
                root,
                steps,
                offset,
            });
        };
        let offset = self.offset()?;
        let elements = match self.take("[") {
            false => None,
            true => {
                let range = self.index()?;
                self.expect("]")?;
                let Step::Slice(limit) = range else {
                    return Err("of registers and offsets only ranges [0..N] are taken".into());
                };
                Some(limit)
            }
        };
        Ok(Expr::Raw(Raw::Load {
            scalar,
            at: Box::new(at),
            offset,
            elements,
        }))
    }

    /// `+0x10)`, `-8)` or `)`
    fn offset(&mut self) -> Result<i32, String> {
        let offset = if self.take("+") {
            self.number()? as i64
        } else if self.take("-") {
            (self.number()? as i64).wrapping_neg()
        } else {
            0
        };
        self.expect(")")?;
        i32::try_from(offset).map_err(|_| format!("{offset} is too far"))
    }
}

fn argument(word: &str) -> Result<Option<Raw>, String> {
    let Some(Ok(n)) = word.strip_prefix("arg").map(str::parse::<usize>) else {
        return Ok(None);
    };
    match n {
        1..=6 => Ok(Some(Raw::Argument(n - 1))),
        _ => Err(format!(
            "{word}: there are arg1 to arg6, those in registers"
        )),
    }
}

/// `u8` to `i64`, and in network byte order `be16`, `be32`, `be64`.
fn scalar(word: &str) -> Option<Scalar> {
    let network = |bytes| Scalar {
        swapped: true,
        ..Scalar::unsigned(bytes)
    };
    Some(match word {
        "u8" => Scalar::unsigned(1),
        "u16" => Scalar::unsigned(2),
        "u32" => Scalar::unsigned(4),
        "u64" => Scalar::unsigned(8),
        "i8" => Scalar::native(1, true),
        "i16" => Scalar::native(2, true),
        "i32" => Scalar::native(4, true),
        "i64" => Scalar::native(8, true),
        "be16" => network(2),
        "be32" => network(4),
        "be64" => network(8),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
