//! What an unwind entry says at one instruction.
use crate::cfi::{Cfa, Op, Program};
use crate::{Refused, expression};

/// The instructions of an entry that make its state at `svma`, without those that were taken back.
pub fn in_force<'p, 'd>(program: &'p Program<'d>, svma: u64) -> Vec<&'p Op<'d>> {
    let (mut all, mut remembered) = (Vec::new(), Vec::new());
    for (_, op) in program.steps.iter().take_while(|s| s.0 <= svma) {
        match op {
            Op::Remember => remembered.push(all.len()),
            // The decoder has seen to it that there is one.
            Op::Restore(_) => all.truncate(remembered.pop().unwrap_or(0)),
            Op::Cfa(_) | Op::Verbatim(_) => all.push(op),
        }
    }
    all
}

/// Inserted code changes registers that calls need not keep, and says so in no rule.
pub fn check(cfa: Option<Cfa>, program: &Program, svma: u64) -> Result<(), Refused> {
    // rbx, rbp, rsp and r12 to r15 (x86-64 psABI, figure 3.36).
    let kept = |register: u16| matches!(register, 3 | 6 | 7 | 12..=15);
    let refused = || {
        let what = "a register that probes change";
        Err(Refused::Rule { svma, what })
    };
    match cfa {
        Some(Cfa::Register { register, .. }) if !kept(register) => return refused(),
        Some(Cfa::Expression { code, .. }) if !expression::registers(code).all(kept) => {
            return refused();
        }
        _ => {}
    }
    for op in in_force(program, svma) {
        if let Op::Verbatim(range) = op
            && !expression::read_by_rule(&program.bytes[range.clone()]).all(kept)
        {
            return refused();
        }
    }
    Ok(())
}
