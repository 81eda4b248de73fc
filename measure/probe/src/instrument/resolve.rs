//! From what was written to where it lies in one function, and how it can be read there.
mod register;
mod walk;

use super::capture::parse::{Expr, Limit, Raw, Step, Wanted};
use super::capture::{Array, Bound, Capture, Chain, Reg, Scalar, Source};
use crate::instrument::body::own_load;
use crate::instrument::body::unit::{Piece, Unit};
use crate::locate::signature::{Debug, Parameter, Signature, TypeKind};
use hopscope_event::value::{CAPTURES_MAX, ELEMENTS_MAX, number};
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace, FunctionId};
use walk::TOO_FAR;

/// What may be done to read behind a pointer.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Plain loads: the user answers for the pointers.
    pub trust_pointers: bool,
    /// Why the kernel may not be asked to copy; `None` when it may.
    pub no_checked_copy: Option<String>,
}

/// A function to be captured from.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub unit: &'a Unit,
    pub pieces: &'a [Piece<'a>],
    pub debug: Option<&'a Debug>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{capture}: {why}")]
pub struct CannotCapture {
    pub capture: String,
    pub why: String,
}

/// Resolves the captures of one function; those that cannot be taken come with the reason.
pub fn resolve(
    subject: Subject<'_>,
    wanted: &[Wanted],
    policy: &Policy,
) -> (Vec<Capture>, Vec<CannotCapture>) {
    let svma = subject.unit.entry;
    let resolver = Resolver {
        subject,
        signature: subject.debug.and_then(|debug| debug.function(svma)),
        wanted,
        policy,
    };
    let (mut captures, mut refused) = (Vec::new(), Vec::new());
    let mut nth = [0u16; 3];
    for wanted in wanted {
        match resolver.capture(wanted) {
            Ok(mut capture) => {
                let place = capture.entry.at;
                let n = &mut nth[place as usize];
                capture.entry.capture = number(place, *n);
                *n += 1;
                if usize::from(*n) <= CAPTURES_MAX {
                    captures.push(capture);
                }
            }
            Err(why) => refused.push(CannotCapture {
                capture: wanted.text.clone(),
                why,
            }),
        }
    }
    (captures, refused)
}

struct Resolver<'a> {
    subject: Subject<'a>,
    signature: Option<Signature>,
    wanted: &'a [Wanted],
    policy: &'a Policy,
}

/// Where a value is taken and how; of the body's own loads, behind which instruction in which register.
type Way = (CapturePlace, CaptureMethod, Vec<(u64, Reg)>);

impl Resolver<'_> {
    fn capture(&self, wanted: &Wanted) -> Result<Capture, String> {
        let (source, scalar) = match &wanted.what {
            Expr::Return => (Source::Return, self.returned()?),
            value => self.source(value)?,
        };
        let (at, method, loads) = self.method(&source, scalar)?;
        let elements_max = match &source {
            Source::Array(Array {
                to: Bound::Number(n),
                ..
            }) => (*n).min(ELEMENTS_MAX as u64) as u16,
            Source::Array(_) => ELEMENTS_MAX as u16,
            _ => 1,
        };
        Ok(Capture {
            entry: CaptureEntry {
                function: FunctionId(0),
                capture: 0,
                name: wanted.name(),
                bits: 8 * scalar.bytes,
                signed: scalar.signed,
                at,
                method,
                elements_max,
            },
            scalar,
            source,
            loads,
        })
    }

    fn method(&self, source: &Source, scalar: Scalar) -> Result<Way, String> {
        use {CaptureMethod as How, CapturePlace as At};
        let chain = match source {
            Source::Return => return Ok((At::Return, How::Register, Vec::new())),
            Source::Scalar(chain) if chain.offsets.is_empty() => {
                return Ok((At::Entry, How::Register, Vec::new()));
            }
            Source::Scalar(chain) => Some(chain),
            Source::Array(_) | Source::Counter(_) => None,
        };
        if self.policy.trust_pointers {
            return Ok((At::Entry, How::PlainLoad, Vec::new()));
        }
        let (unit, pieces) = (self.subject.unit, self.subject.pieces);
        if let Some(own) = chain.and_then(|c| own_load::find(unit, pieces, c, scalar)) {
            return Ok((At::Body, How::OwnLoad, own.loads));
        }
        match &self.policy.no_checked_copy {
            None => Ok((At::Entry, How::CheckedCopy, Vec::new())),
            Some(why) => Err(format!(
                "the function does not load it in a way that can be followed, and the kernel may \
                 not be asked to copy it ({why}); --trust-pointers loads it unchecked"
            )),
        }
    }

    fn source(&self, value: &Expr) -> Result<(Source, Scalar), String> {
        match value {
            Expr::Return => Err("the returned value is not known at the entry".into()),
            Expr::Counter(_) => Err("a counter is no value".into()),
            Expr::Raw(raw) => self.raw(raw),
            Expr::Path { root, steps } => {
                let (walk, said) = self.walk(root, steps)?;
                let scalar = self.scalar(walk.ty, &said)?;
                Ok((walk.source(), scalar))
            }
            Expr::Cast {
                scalar,
                root,
                steps,
                offset,
            } => {
                let (mut walk, said) = self.walk(root, steps)?;
                match self.debug()?.kind(walk.ty) {
                    TypeKind::Pointer { .. } => walk.through(0)?,
                    TypeKind::Array { .. } => walk.add(0)?,
                    _ => return Err(format!("{said} is neither a pointer nor an array of bytes")),
                }
                let last = walk.last().ok_or(TOO_FAR)?;
                *last = last.checked_add(*offset).ok_or(TOO_FAR)?;
                Ok((walk.source(), *scalar))
            }
        }
    }

    fn raw(&self, raw: &Raw) -> Result<(Source, Scalar), String> {
        let (base, mut offsets) = follow(raw)?;
        let Raw::Load {
            scalar, elements, ..
        } = raw
        else {
            return Ok((Source::Scalar(Chain { base, offsets }), Scalar::WORD));
        };
        let scalar = *scalar;
        let Some(limit) = elements else {
            return Ok((Source::Scalar(Chain { base, offsets }), scalar));
        };
        let array = Array {
            start: Chain {
                base,
                offsets: std::mem::take(&mut offsets),
            },
            stride: u32::from(scalar.bytes),
            tail: Vec::new(),
            to: self.limit(limit)?,
        };
        Ok((Source::Array(array), scalar))
    }

    fn limit(&self, limit: &Limit) -> Result<Bound, String> {
        let value = match limit {
            Limit::Number(n) => return Ok(Bound::Number(*n)),
            Limit::Value(value) => value,
        };
        let value = self.named_elsewhere(value).unwrap_or(value);
        match self.source(value)? {
            (Source::Scalar(at), scalar) => Ok(Bound::Value { at, scalar }),
            _ => Err("the number of elements is an array itself".into()),
        }
    }

    /// `n` of `[0..n]` may be the last name of another capture, such as `frame->n`.
    fn named_elsewhere(&self, value: &Expr) -> Option<&Expr> {
        let Expr::Path { root, steps } = value else {
            return None;
        };
        if !steps.is_empty() || self.parameter(root).is_ok() {
            return None;
        }
        let ends_so = |w: &&Wanted| match &w.what {
            Expr::Path { steps, .. } => match steps.last() {
                Some(Step::Arrow(name) | Step::Dot(name)) => name == root,
                _ => false,
            },
            _ => false,
        };
        self.wanted.iter().find(ends_so).map(|w| &w.what)
    }

    fn parameter(&self, name: &str) -> Result<(&Parameter, usize), String> {
        let signature = self.signature.as_ref().ok_or_else(|| {
            let what = match self.subject.debug {
                Some(_) => "the debugging information does not describe this function",
                None => "the module has no debugging information (compile with -g)",
            };
            format!("{what}; arg1 and u32(arg1+0x10) need none")
        })?;
        let found = signature.parameters.iter().position(|p| p.name == name);
        let at = found.ok_or_else(|| {
            let names: Vec<_> = signature
                .parameters
                .iter()
                .map(|p| p.name.as_str())
                .collect();
            match names.is_empty() {
                true => format!("the function has no parameter {name}, it has none at all"),
                false => format!(
                    "no parameter is named {name}, there are {}",
                    names.join(", ")
                ),
            }
        })?;
        Ok((&signature.parameters[at], at))
    }

    fn debug(&self) -> Result<&Debug, String> {
        self.subject
            .debug
            .ok_or_else(|| "no debugging information".to_owned())
    }
}

/// Base and offsets; pointers on the way must be of 64 bits.
fn follow(raw: &Raw) -> Result<(Reg, Vec<i32>), String> {
    match raw {
        Raw::Argument(n) => Ok((Reg::ARGUMENTS[*n], Vec::new())),
        Raw::Load { at, offset, .. } => {
            let is_pointer = |inner: &Raw| match inner {
                Raw::Argument(_) => true,
                Raw::Load {
                    scalar, elements, ..
                } => *scalar == Scalar::WORD && elements.is_none(),
            };
            if !is_pointer(at) {
                return Err("an address inside is u64(…), without a range".into());
            }
            let (base, mut offsets) = follow(at)?;
            offsets.push(*offset);
            Ok((base, offsets))
        }
    }
}
