//! Parameters and types of functions, from DWARF.
use super::source::Reader;
use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, Operation, Unit, UnitOffset};
use std::path::Path;

/// Members without a name within one another; damaged files have structs that hold themselves.
const NESTED_MAX: usize = 8;

type Die<'u> = DebuggingInformationEntry<'u, 'u, Reader>;

/// DWARF of one file. Not shared between threads.
pub struct Debug {
    pub(super) dwarf: Dwarf<Reader>,
    pub(super) units: Vec<Unit<Reader>>,
}

/// A type or a function in one of the units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    pub(super) unit: usize,
    pub(super) offset: UnitOffset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeKind {
    Integer {
        bytes: u8,
        signed: bool,
    },
    Pointer {
        to: Option<At>,
    },
    /// Elements, and how many bytes from one to the next.
    Array {
        of: At,
        stride: u64,
    },
    /// A struct, class or union.
    Struct {
        name: String,
        bytes: u64,
    },
    Float,
    Void,
    Other(&'static str),
}

/// Where a parameter is when the function is entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// DWARF number of a register.
    Register(u16),
    /// It lies in the frame once the function has put it there: at the entry, where the calling
    /// convention has it.
    Convention,
    /// On the stack, put there by the caller.
    Stack,
    OptimisedOut,
    /// Not in one place as it is: a constant, pieces, a computation.
    Computed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub ty: At,
    pub place: Place,
}

pub struct Signature {
    pub parameters: Vec<Parameter>,
    /// `None` of `void`.
    pub returns: Option<At>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub offset: u64,
    pub ty: At,
    pub bit_field: bool,
}

impl Debug {
    /// `None` without debugging information.
    pub(super) fn load(file: &object::File, path: &Path) -> Option<Debug> {
        let dwarf = super::source::dwarf(file, ".debug_info", path)?;
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            units.extend(dwarf.unit(header));
        }
        (!units.is_empty()).then_some(Debug { dwarf, units })
    }

    fn die(&self, at: At) -> Option<Die<'_>> {
        self.units[at.unit].entry(at.offset).ok()
    }

    pub(super) fn text(&self, unit: usize, value: AttributeValue<Reader>) -> Option<String> {
        let text = self.dwarf.attr_string(&self.units[unit], value).ok()?;
        Some(gimli::Reader::to_string_lossy(&text).ok()?.into_owned())
    }

    fn name(&self, at: At) -> Option<String> {
        let value = self.die(at)?.attr_value(gimli::DW_AT_name).ok()??;
        self.text(at.unit, value)
    }

    pub(super) fn refers(&self, unit: usize, die: &Die, attribute: gimli::DwAt) -> Option<At> {
        match die.attr_value(attribute).ok()?? {
            AttributeValue::UnitRef(offset) => Some(At { unit, offset }),
            AttributeValue::DebugInfoRef(offset) => {
                // Units lie in the order of their offsets.
                let begins = |u: &Unit<Reader>| u.header.offset().as_debug_info_offset();
                let after = self.units.partition_point(|u| begins(u) <= Some(offset));
                let unit = after.checked_sub(1)?;
                let offset = offset.to_unit_offset(&self.units[unit].header)?;
                Some(At { unit, offset })
            }
            _ => None,
        }
    }

    /// The attribute, or that of what the entry is an instance of.
    pub(super) fn inherited<T>(&self, at: At, get: &dyn Fn(At, &Die) -> Option<T>) -> Option<T> {
        let mut at = at;
        for _ in 0..8 {
            let die = self.die(at)?;
            if let Some(found) = get(at, &die) {
                return Some(found);
            }
            let origin = self.refers(at.unit, &die, gimli::DW_AT_abstract_origin);
            at = origin.or_else(|| self.refers(at.unit, &die, gimli::DW_AT_specification))?;
        }
        None
    }

    fn type_of(&self, at: At) -> Option<At> {
        self.inherited(at, &|at, die| self.refers(at.unit, die, gimli::DW_AT_type))
    }

    fn number(&self, at: At, attribute: gimli::DwAt) -> Option<u64> {
        self.die(at)?.attr_value(attribute).ok()??.udata_value()
    }

    /// The function whose code begins at `svma`.
    pub fn function(&self, svma: u64) -> Option<Signature> {
        (0..self.units.len()).find_map(|unit| {
            let found = self.subprogram(unit, svma)?;
            Some(self.signature(found, svma))
        })
    }

    fn subprogram(&self, unit: usize, svma: u64) -> Option<At> {
        let u = &self.units[unit];
        let mut ranges = self.dwarf.unit_ranges(u).ok()?;
        let mut covers = false;
        while let Ok(Some(range)) = ranges.next() {
            covers |= (range.begin..range.end).contains(&svma);
        }
        if !covers {
            return None;
        }
        let mut entries = u.entries();
        while let Ok(Some((_, die))) = entries.next_dfs() {
            if die.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let mut ranges = self.dwarf.die_ranges(u, die).ok()?;
            while let Ok(Some(range)) = ranges.next() {
                if range.begin == svma {
                    let offset = die.offset();
                    return Some(At { unit, offset });
                }
            }
        }
        None
    }

    fn signature(&self, function: At, entry: u64) -> Signature {
        let mut parameters = Vec::new();
        for child in self.children(function) {
            let is_parameter = |d: Die| d.tag() == gimli::DW_TAG_formal_parameter;
            if !self.die(child).is_some_and(is_parameter) {
                continue;
            }
            let name = self.inherited(child, &|at, _| self.name(at));
            if let (name, Some(ty)) = (name.unwrap_or_default(), self.type_of(child)) {
                let place = self.place(child, entry);
                parameters.push(Parameter { name, ty, place });
            }
        }
        Signature {
            parameters,
            returns: self.type_of(function),
        }
    }

    fn children(&self, at: At) -> Vec<At> {
        let mut found = Vec::new();
        let unit = at.unit;
        if let Ok(mut tree) = self.units[unit].entries_tree(Some(at.offset))
            && let Ok(root) = tree.root()
        {
            let mut children = root.children();
            while let Ok(Some(child)) = children.next() {
                let offset = child.entry().offset();
                found.push(At { unit, offset });
            }
        }
        found
    }

    fn place(&self, parameter: At, entry: u64) -> Place {
        let unit = &self.units[parameter.unit];
        let value = self.die(parameter);
        let value = value.and_then(|die| die.attr_value(gimli::DW_AT_location).ok()?);
        let expression = match value {
            None => return Place::OptimisedOut,
            Some(AttributeValue::Exprloc(expression)) => expression,
            Some(list) => {
                let Ok(Some(mut locations)) = self.dwarf.attr_locations(unit, list) else {
                    return Place::OptimisedOut;
                };
                let mut found = None;
                while let Ok(Some(location)) = locations.next() {
                    if (location.range.begin..location.range.end).contains(&entry) {
                        found = Some(location.data);
                        break;
                    }
                }
                match found {
                    Some(expression) => expression,
                    None => return Place::OptimisedOut,
                }
            }
        };
        let mut operations = expression.operations(unit.encoding());
        let first = operations.next();
        if !matches!(operations.next(), Ok(None)) {
            return Place::Computed;
        }
        match first {
            Ok(Some(Operation::Register { register })) => Place::Register(register.0),
            Ok(Some(Operation::FrameOffset { offset })) if offset < 0 => Place::Convention,
            Ok(Some(Operation::FrameOffset { .. })) => Place::Stack,
            Ok(None) => Place::OptimisedOut,
            _ => Place::Computed,
        }
    }

    /// Past typedefs and qualifiers.
    pub fn bare(&self, ty: At) -> At {
        let mut at = ty;
        for _ in 0..32 {
            let Some(die) = self.die(at) else { return at };
            let is_other_name = matches!(
                die.tag(),
                gimli::DW_TAG_typedef
                    | gimli::DW_TAG_const_type
                    | gimli::DW_TAG_volatile_type
                    | gimli::DW_TAG_restrict_type
                    | gimli::DW_TAG_atomic_type
            );
            match self.refers(at.unit, &die, gimli::DW_AT_type) {
                Some(inner) if is_other_name => at = inner,
                _ => return at,
            }
        }
        at
    }

    pub fn kind(&self, ty: At) -> TypeKind {
        let at = self.bare(ty);
        let Some(die) = self.die(at) else {
            return TypeKind::Other("unreadable");
        };
        let bytes = self.number(at, gimli::DW_AT_byte_size);
        match die.tag() {
            gimli::DW_TAG_base_type => self.base(at, bytes.unwrap_or(0)),
            gimli::DW_TAG_enumeration_type => self.enumeration(at, bytes),
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => TypeKind::Pointer {
                to: self.type_of(at),
            },
            gimli::DW_TAG_array_type => match self.type_of(at) {
                Some(of) if !self.has_several_dimensions(at) => TypeKind::Array {
                    of,
                    stride: self.size(of),
                },
                _ => TypeKind::Other("an array of several dimensions"),
            },
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                TypeKind::Struct {
                    name: self.name(at).unwrap_or_default(),
                    bytes: bytes.unwrap_or(0),
                }
            }
            gimli::DW_TAG_typedef | gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type => {
                TypeKind::Void
            }
            _ => TypeKind::Other("of a type that cannot be captured"),
        }
    }

    fn base(&self, at: At, bytes: u64) -> TypeKind {
        let encoding = self
            .die(at)
            .and_then(|d| d.attr_value(gimli::DW_AT_encoding).ok()?);
        let Some(AttributeValue::Encoding(encoding)) = encoding else {
            return TypeKind::Other("without an encoding");
        };
        let signed = match encoding {
            gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => true,
            gimli::DW_ATE_unsigned
            | gimli::DW_ATE_unsigned_char
            | gimli::DW_ATE_boolean
            | gimli::DW_ATE_UTF
            | gimli::DW_ATE_address => false,
            gimli::DW_ATE_float | gimli::DW_ATE_complex_float | gimli::DW_ATE_decimal_float => {
                return TypeKind::Float;
            }
            _ => return TypeKind::Other("of an encoding that cannot be captured"),
        };
        match bytes {
            1 | 2 | 4 | 8 => TypeKind::Integer {
                bytes: bytes as u8,
                signed,
            },
            _ => TypeKind::Other("an integer wider than 64 bits"),
        }
    }

    fn enumeration(&self, at: At, bytes: Option<u64>) -> TypeKind {
        // Damaged files have enumerations of themselves: only a base type is looked into.
        let base = self.type_of(at).map(|ty| self.bare(ty)).filter(|ty| {
            let tag = self.die(*ty).map(|die| die.tag());
            tag == Some(gimli::DW_TAG_base_type)
        });
        let signed = match base.map(|ty| self.kind(ty)) {
            Some(TypeKind::Integer { signed, .. }) => signed,
            _ => false,
        };
        match bytes {
            Some(bytes @ (1 | 2 | 4 | 8)) => TypeKind::Integer {
                bytes: bytes as u8,
                signed,
            },
            _ => TypeKind::Other("an enumeration of no known size"),
        }
    }

    fn has_several_dimensions(&self, array: At) -> bool {
        let is_range = |at: &At| {
            let tag = self.die(*at).map(|d| d.tag());
            tag == Some(gimli::DW_TAG_subrange_type)
        };
        self.children(array)
            .iter()
            .filter(|at| is_range(at))
            .count()
            > 1
    }

    /// Bytes from one element of this type to the next; 0 when not known.
    pub fn size(&self, ty: At) -> u64 {
        // An array of arrays of …, in damaged files of itself: its own size is not that of elements.
        let tag = self.die(self.bare(ty)).map(|die| die.tag());
        if tag == Some(gimli::DW_TAG_array_type) {
            return self
                .number(self.bare(ty), gimli::DW_AT_byte_size)
                .unwrap_or(0);
        }
        match self.kind(ty) {
            TypeKind::Integer { bytes, .. } => u64::from(bytes),
            TypeKind::Pointer { .. } => 8,
            TypeKind::Struct { bytes, .. } => bytes,
            _ => self
                .number(self.bare(ty), gimli::DW_AT_byte_size)
                .unwrap_or(0),
        }
    }

    /// Looks into members without a name too.
    pub fn member(&self, ty: At, name: &str) -> Option<Member> {
        self.member_within(ty, name, NESTED_MAX)
    }

    fn member_within(&self, ty: At, name: &str, levels: usize) -> Option<Member> {
        let levels = levels.checked_sub(1)?;
        let children = self.children(self.bare(ty));
        let members = children.into_iter().filter(|at| {
            let tag = self.die(*at).map(|d| d.tag());
            matches!(tag, Some(gimli::DW_TAG_member | gimli::DW_TAG_inheritance))
        });
        let mut nameless = Vec::new();
        for at in members {
            match self.name(at) {
                Some(found) if found == name => return self.member_at(at),
                Some(_) => {}
                None => nameless.push(at),
            }
        }
        nameless.into_iter().find_map(|at| {
            let outer = self.member_at(at)?;
            let mut inner = self.member_within(outer.ty, name, levels)?;
            inner.offset = inner.offset.checked_add(outer.offset)?;
            Some(inner)
        })
    }

    fn member_at(&self, at: At) -> Option<Member> {
        let has = |attribute| self.number(at, attribute).is_some();
        let bit_field = has(gimli::DW_AT_bit_size) || has(gimli::DW_AT_data_bit_offset);
        Some(Member {
            // A union's members have none: they begin where it begins.
            offset: self
                .number(at, gimli::DW_AT_data_member_location)
                .unwrap_or(0),
            ty: self.type_of(at)?,
            bit_field,
        })
    }

    /// Names of the members of a struct, for what an error says.
    pub fn members(&self, ty: At) -> Vec<String> {
        let children = self.children(self.bare(ty));
        children
            .into_iter()
            .filter_map(|at| self.name(at))
            .collect()
    }
}
