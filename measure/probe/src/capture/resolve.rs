//! From what was written to where it lies in one function, and how it can be read there.
use super::parse::{Expr, Limit, Raw, Step, Wanted};
use super::{Array, Bound, Capture, Chain, Reg, Scalar, Source};
use crate::locate::signature::{At, Debug, Kind, Parameter, Place, Signature};
use crate::relocate::own_load;
use crate::relocate::unit::{Piece, Unit};
use hopscope_event::value::{CAPTURES_MAX, ELEMENTS_MAX, number};
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace, FunctionId};

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

/// Where a path has led: an address at the end of `offsets`, or a register where there are none.
struct Walk {
    base: Reg,
    offsets: Vec<i32>,
    ty: At,
    array: Option<(u32, Bound)>,
    /// Offsets behind the first in an array's element.
    tail: Vec<i32>,
}

impl Walk {
    fn last(&mut self) -> Option<&mut i32> {
        self.tail.last_mut().or(self.offsets.last_mut())
    }

    fn add(&mut self, offset: u64) -> Result<(), String> {
        let Some(last) = self.last() else {
            return Err("it is passed by value, in registers that hold parts of it".into());
        };
        *last = i32::try_from(i64::from(*last) + offset as i64).map_err(|_| TOO_FAR)?;
        Ok(())
    }

    fn through(&mut self, offset: u64) -> Result<(), String> {
        let offset = i32::try_from(offset).map_err(|_| TOO_FAR)?;
        match self.array {
            Some(_) => self.tail.push(offset),
            None => self.offsets.push(offset),
        }
        Ok(())
    }
}

impl Walk {
    fn source(self) -> Source {
        let chain = Chain {
            base: self.base,
            offsets: self.offsets,
        };
        match self.array {
            None => Source::Scalar(chain),
            Some((stride, to)) => Source::Array(Array {
                start: chain,
                stride,
                tail: self.tail,
                to,
            }),
        }
    }
}

const TOO_FAR: &str = "it lies further than 2 GiB behind the pointer";

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
            Source::Array(_) => None,
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
                    Kind::Pointer { .. } => walk.through(0)?,
                    Kind::Array { .. } => walk.add(0)?,
                    _ => return Err(format!("{said} is no pointer and no array of bytes")),
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

    fn register(&self, name: &str) -> Result<(Reg, At), String> {
        let (parameter, at) = self.parameter(name)?;
        let reg = match &parameter.place {
            Place::Register(dwarf) => of_dwarf(*dwarf)
                .ok_or_else(|| format!("{name} is in a register that holds no integers"))?,
            Place::Convention => self.by_convention(at)?,
            Place::Stack => {
                return Err(format!("{name} is passed on the stack, not in a register"));
            }
            Place::OptimisedOut => {
                return Err(format!(
                    "{name} is optimised out: it is nowhere at the entry"
                ));
            }
            Place::Computed => {
                return Err(format!(
                    "{name} is not in one register at the entry: the compiler made it a constant or took it apart"
                ));
            }
        };
        Ok((reg, parameter.ty))
    }

    /// Unoptimised code puts parameters into its frame: at the entry they are where the caller put
    /// them.
    fn by_convention(&self, at: usize) -> Result<Reg, String> {
        let debug = self.debug()?;
        let signature = self.signature.as_ref().ok_or("no signature")?;
        let mut next = match signature.returns.map(|ty| debug.kind(ty)) {
            // Larger ones are returned through a pointer that comes first.
            Some(Kind::Struct { bytes, .. }) if bytes > 16 => 1,
            _ => 0,
        };
        for (n, parameter) in signature.parameters.iter().enumerate() {
            match debug.kind(parameter.ty) {
                Kind::Integer { .. } | Kind::Pointer { .. } if n == at => {
                    let reg = Reg::ARGUMENTS.get(next);
                    return reg
                        .copied()
                        .ok_or_else(|| "it is passed on the stack".to_owned());
                }
                Kind::Integer { .. } | Kind::Pointer { .. } => next += 1,
                _ if n == at => break,
                Kind::Float => {}
                Kind::Struct { bytes, .. } if bytes > 16 => {}
                _ => {
                    let name = &parameter.name;
                    return Err(format!(
                        "it comes after {name}, which is passed by value: in which registers, only optimised code says (-O1 and up)"
                    ));
                }
            }
        }
        Err("it is no integer and no pointer".into())
    }

    fn walk(&self, root: &str, steps: &[Step]) -> Result<(Walk, String), String> {
        let (base, ty) = self.register(root)?;
        let mut walk = Walk {
            base,
            offsets: Vec::new(),
            ty,
            array: None,
            tail: Vec::new(),
        };
        let mut said = root.to_owned();
        for step in steps {
            self.step(&mut walk, step, &said)?;
            said = match step {
                Step::Arrow(name) => format!("{said}->{name}"),
                Step::Dot(name) => format!("{said}.{name}"),
                Step::Index(n) => format!("{said}[{n}]"),
                Step::Slice(_) => format!("{said}[]"),
            };
        }
        Ok((walk, said))
    }

    fn scalar(&self, ty: At, said: &str) -> Result<Scalar, String> {
        match self.debug()?.kind(ty) {
            Kind::Integer { bytes, signed } => Ok(Scalar::native(bytes, signed)),
            Kind::Pointer { .. } => Ok(Scalar::WORD),
            Kind::Struct { name, .. } => Err(format!(
                "{said} is a struct {name}: name a member of it, {}",
                self.some_members(ty)
            )),
            Kind::Array { .. } => Err(format!("{said} is an array: take [0..N] or an element")),
            Kind::Float => Err(format!(
                "{said} is a floating-point number: only integers are taken along"
            )),
            Kind::Void => Err(format!("{said} has no type")),
            Kind::Other(what) => Err(format!("{said} is {what}")),
        }
    }

    fn some_members(&self, ty: At) -> String {
        let mut names = self.debug().map(|d| d.members(ty)).unwrap_or_default();
        let more = names.len() > 8;
        names.truncate(8);
        let names = names.join(", ");
        match more {
            true => format!("{names} …"),
            false => names,
        }
    }

    fn step(&self, walk: &mut Walk, step: &Step, said: &str) -> Result<(), String> {
        let debug = self.debug()?;
        let kind = debug.kind(walk.ty);
        match step {
            Step::Arrow(name) => {
                let Kind::Pointer { to: Some(to) } = kind else {
                    return Err(format!(
                        "{said} is no pointer to a struct: -> does not apply"
                    ));
                };
                let member = self.member(to, name, said)?;
                walk.ty = member.1;
                walk.through(member.0)
            }
            Step::Dot(name) => {
                if let Kind::Pointer { .. } = kind {
                    return Err(format!("{said} is a pointer: write {said}->{name}"));
                }
                let member = self.member(walk.ty, name, said)?;
                walk.ty = member.1;
                walk.add(member.0)
            }
            Step::Index(n) => {
                let n = u64::from(*n);
                let (of, stride) = self.elements(&kind, said)?;
                walk.ty = of;
                match kind {
                    Kind::Pointer { .. } => walk.through(n * stride),
                    _ => walk.add(n * stride),
                }
            }
            Step::Slice(limit) => {
                let (of, stride) = self.elements(&kind, said)?;
                walk.ty = of;
                if let Kind::Pointer { .. } = kind {
                    walk.through(0)?;
                }
                walk.add(0)?;
                let stride = u32::try_from(stride).map_err(|_| TOO_FAR)?;
                walk.array = Some((stride, self.limit(limit)?));
                Ok(())
            }
        }
    }

    fn elements(&self, kind: &Kind, said: &str) -> Result<(At, u64), String> {
        let (of, stride) = match kind {
            Kind::Array { of, stride } => (*of, *stride),
            Kind::Pointer { to: Some(to) } => (*to, self.debug()?.size(*to)),
            _ => {
                return Err(format!(
                    "{said} is no array and no pointer: [ does not apply"
                ));
            }
        };
        match stride {
            0 => Err(format!("the size of an element of {said} is not known")),
            _ => Ok((of, stride)),
        }
    }

    fn member(&self, ty: At, name: &str, said: &str) -> Result<(u64, At), String> {
        let debug = self.debug()?;
        let Some(member) = debug.member(ty, name) else {
            return Err(format!(
                "what {said} is has no member {name}; there are {}",
                self.some_members(ty)
            ));
        };
        match member.bit_field {
            true => Err(format!(
                "{name} is a bit field: only whole integers are taken along"
            )),
            false => Ok((member.offset, member.ty)),
        }
    }

    fn returned(&self) -> Result<Scalar, String> {
        let Some(signature) = &self.signature else {
            return Ok(Scalar::WORD);
        };
        match signature.returns {
            Some(ty) => self.scalar(ty, "what it returns"),
            None => Err("the function returns nothing".into()),
        }
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

/// Register numbers of the x86-64 psABI's DWARF mapping (3.6.2) to those of machine code.
fn of_dwarf(register: u16) -> Option<Reg> {
    const LOW: [u8; 8] = [0, 2, 1, 3, 6, 7, 5, 4];
    match register {
        0..=7 => Some(Reg(LOW[usize::from(register)])),
        8..=15 => Some(Reg(register as u8)),
        _ => None,
    }
}
