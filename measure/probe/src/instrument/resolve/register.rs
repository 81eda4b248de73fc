//! In which register a parameter comes.
use super::Resolver;
use crate::instrument::capture::Reg;
use crate::locate::signature::{At, Place, TypeKind};

impl Resolver<'_> {
    pub(super) fn register(&self, name: &str) -> Result<(Reg, At), String> {
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
    pub(super) fn by_convention(&self, at: usize) -> Result<Reg, String> {
        let debug = self.debug()?;
        let signature = self.signature.as_ref().ok_or("no signature")?;
        let mut next = match signature.returns.map(|ty| debug.kind(ty)) {
            // Larger ones are returned through a pointer that comes first.
            Some(TypeKind::Struct { bytes, .. }) if bytes > 16 => 1,
            _ => 0,
        };
        for (n, parameter) in signature.parameters.iter().enumerate() {
            match debug.kind(parameter.ty) {
                TypeKind::Integer { .. } | TypeKind::Pointer { .. } if n == at => {
                    let reg = Reg::ARGUMENTS.get(next);
                    return reg
                        .copied()
                        .ok_or_else(|| "it is passed on the stack".to_owned());
                }
                TypeKind::Integer { .. } | TypeKind::Pointer { .. } => next += 1,
                _ if n == at => break,
                TypeKind::Float => {}
                TypeKind::Struct { bytes, .. } if bytes > 16 => {}
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
