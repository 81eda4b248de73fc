//! A path of names through the types of the program.
use super::Resolver;
use crate::instrument::capture::parse::Step;
use crate::instrument::capture::{Array, Bound, Chain, Reg, Scalar, Source};
use crate::locate::signature::{At, TypeKind};

/// Where a path has led: an address at the end of `offsets`, or a register where there are none.
pub(super) struct Walk {
    base: Reg,
    offsets: Vec<i32>,
    pub(super) ty: At,
    array: Option<(u32, Bound)>,
    /// Offsets behind the first in an array's element.
    tail: Vec<i32>,
}

impl Walk {
    pub(super) fn last(&mut self) -> Option<&mut i32> {
        self.tail.last_mut().or(self.offsets.last_mut())
    }

    pub(super) fn add(&mut self, offset: u64) -> Result<(), String> {
        let Some(last) = self.last() else {
            return Err("it is passed by value, in registers that hold parts of it".into());
        };
        *last = i32::try_from(i64::from(*last) + offset as i64).map_err(|_| TOO_FAR)?;
        Ok(())
    }

    pub(super) fn through(&mut self, offset: u64) -> Result<(), String> {
        let offset = i32::try_from(offset).map_err(|_| TOO_FAR)?;
        match self.array {
            Some(_) => self.tail.push(offset),
            None => self.offsets.push(offset),
        }
        Ok(())
    }

    pub(super) fn source(self) -> Source {
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

pub(super) const TOO_FAR: &str = "it lies further than 2 GiB behind the pointer";

impl Resolver<'_> {
    pub(super) fn walk(&self, root: &str, steps: &[Step]) -> Result<(Walk, String), String> {
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

    pub(super) fn scalar(&self, ty: At, said: &str) -> Result<Scalar, String> {
        match self.debug()?.kind(ty) {
            TypeKind::Integer { bytes, signed } => Ok(Scalar::native(bytes, signed)),
            TypeKind::Pointer { .. } => Ok(Scalar::WORD),
            TypeKind::Struct { name, .. } => Err(format!(
                "{said} is a struct {name}: select a member, {}",
                self.some_members(ty)
            )),
            TypeKind::Array { .. } => Err(format!("{said} is an array: take [0..N] or an element")),
            TypeKind::Float => Err(format!(
                "{said} is a floating-point number: only integers can be captured"
            )),
            TypeKind::Void => Err(format!("{said} has no type")),
            TypeKind::Other(what) => Err(format!("{said} is {what}")),
        }
    }

    pub(super) fn some_members(&self, ty: At) -> String {
        let mut names = self.debug().map(|d| d.members(ty)).unwrap_or_default();
        let more = names.len() > 8;
        names.truncate(8);
        let names = names.join(", ");
        match more {
            true => format!("{names} …"),
            false => names,
        }
    }

    pub(super) fn step(&self, walk: &mut Walk, step: &Step, said: &str) -> Result<(), String> {
        let debug = self.debug()?;
        let kind = debug.kind(walk.ty);
        match step {
            Step::Arrow(name) => {
                let TypeKind::Pointer { to: Some(to) } = kind else {
                    return Err(format!(
                        "{said} is not a pointer to a struct: -> does not apply"
                    ));
                };
                let member = self.member(to, name, said)?;
                walk.ty = member.1;
                walk.through(member.0)
            }
            Step::Dot(name) => {
                if let TypeKind::Pointer { .. } = kind {
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
                    TypeKind::Pointer { .. } => walk.through(n * stride),
                    _ => walk.add(n * stride),
                }
            }
            Step::Slice(limit) => {
                let (of, stride) = self.elements(&kind, said)?;
                walk.ty = of;
                if let TypeKind::Pointer { .. } = kind {
                    walk.through(0)?;
                }
                walk.add(0)?;
                let stride = u32::try_from(stride).map_err(|_| TOO_FAR)?;
                walk.array = Some((stride, self.limit(limit)?));
                Ok(())
            }
        }
    }

    pub(super) fn elements(&self, kind: &TypeKind, said: &str) -> Result<(At, u64), String> {
        let (of, stride) = match kind {
            TypeKind::Array { of, stride } => (*of, *stride),
            TypeKind::Pointer { to: Some(to) } => (*to, self.debug()?.size(*to)),
            _ => {
                return Err(format!(
                    "{said} is neither an array nor a pointer: [ does not apply"
                ));
            }
        };
        match stride {
            0 => Err(format!("the element size of {said} is unknown")),
            _ => Ok((of, stride)),
        }
    }

    pub(super) fn member(&self, ty: At, name: &str, said: &str) -> Result<(u64, At), String> {
        let debug = self.debug()?;
        let Some(member) = debug.member(ty, name) else {
            return Err(format!(
                "the type of {said} has no member {name}; members: {}",
                self.some_members(ty)
            ));
        };
        match member.bit_field {
            true => Err(format!(
                "{name} is a bit field: only whole integers can be captured"
            )),
            false => Ok((member.offset, member.ty)),
        }
    }

    pub(super) fn returned(&self) -> Result<Scalar, String> {
        let Some(signature) = &self.signature else {
            return Ok(Scalar::WORD);
        };
        match signature.returns {
            Some(ty) => self.scalar(ty, "its return value"),
            None => Err("the function returns nothing".into()),
        }
    }
}
