//! Rows of an unwind entry as gimli evaluates them, in a form that two files can be compared by.
use gimli::{
    BaseAddresses, CfaRule, EndianSlice, FrameDescriptionEntry, LittleEndian, Operation,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
};

pub type Reader<'d> = EndianSlice<'d, LittleEndian>;
pub type Fde<'d> = FrameDescriptionEntry<Reader<'d>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cfa {
    Register(u16, i64),
    Expression(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub start: u64,
    pub end: u64,
    pub cfa: Cfa,
    pub registers: Vec<(u16, String)>,
    pub args_size: u64,
}

/// Ascending. `pushed`: stack pointers are read so many bytes above.
pub fn rows<'d>(
    section: &impl UnwindSection<Reader<'d>>,
    bases: &BaseAddresses,
    fde: &Fde<'d>,
    pushed: impl Fn(u64) -> i64,
) -> Vec<Row> {
    let mut context = UnwindContext::new();
    let mut table = fde.rows(section, bases, &mut context).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = table.next_row().unwrap() {
        let less = pushed(row.start_address());
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let less = if register.0 == 7 { less } else { 0 };
                Cfa::Register(register.0, offset - less)
            }
            CfaRule::Expression(code) => Cfa::Expression(operations(section, code, less, fde)),
        };
        let mut registers: Vec<(u16, String)> = row
            .registers()
            .map(|(register, rule)| (register.0, rule_text(section, rule, fde)))
            .collect();
        registers.sort();
        rows.push(Row {
            start: row.start_address(),
            end: row.end_address(),
            cfa,
            registers,
            args_size: row.saved_args_size(),
        });
    }
    rows
}

fn rule_text<'d>(
    section: &impl UnwindSection<Reader<'d>>,
    rule: &RegisterRule<usize>,
    fde: &Fde<'d>,
) -> String {
    match rule {
        RegisterRule::Expression(code) => format!("at {:?}", operations(section, code, 0, fde)),
        RegisterRule::ValExpression(code) => format!("is {:?}", operations(section, code, 0, fde)),
        rule => format!("{rule:?}"),
    }
}

fn operations<'d>(
    section: &impl UnwindSection<Reader<'d>>,
    code: &UnwindExpression<usize>,
    less: i64,
    fde: &Fde,
) -> Vec<String> {
    let mut operations = code.get(section).unwrap().operations(fde.cie().encoding());
    let mut texts = Vec::new();
    while let Some(mut operation) = operations.next().unwrap() {
        if let Operation::RegisterOffset {
            register, offset, ..
        } = &mut operation
            && register.0 == 7
        {
            *offset -= less;
        }
        texts.push(format!("{operation:?}"));
    }
    texts
}
