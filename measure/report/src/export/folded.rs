//! Folded stacks, as flame graph tools read them: `outer;inner;innermost NUMBER`.
use super::Facts;
use crate::printable_text::printable;
use crate::recording::Names;
use crate::tree;
use hopscope_analyze::{AnalysisResult, Node, NodeIx, tree::Parent};
use hopscope_event::TscFrequency;
use std::io::{self, Write};

/// What the number behind a stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldedValue {
    /// Nanoseconds spent in the innermost function itself; corrected where the probe cost is known.
    OwnNs,
    Calls,
}

/// A semicolon parts frames, and the last space parts the number.
fn frame(name: &str) -> String {
    printable(name).replace(';', ":")
}

fn stack(names: &Names<'_>, outcome: &AnalysisResult, node: &Node) -> String {
    let mut frames = vec![frame(&names.qualified(node.function))];
    let mut at = node.parent;
    loop {
        match at {
            Parent::Node(NodeIx(ix)) => {
                let outer = outcome.tree.node(NodeIx(ix));
                frames.push(frame(&names.qualified(outer.function)));
                at = outer.parent;
            }
            Parent::Root => break,
            Parent::AfterGap => {
                frames.push("[callers lost]".into());
                break;
            }
            Parent::Beyond => {
                frames.push("[callers beyond the bounds of the tree]".into());
                break;
            }
        }
    }
    frames.reverse();
    frames.join(";")
}

/// Stacks in alphabetic order. What the recording lacks comes first, in lines that begin with `#`
/// and do not end in a number: flame graph tools pass over them.
///
/// # Errors
/// Those of `out`.
pub fn write_folded(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    frequency: TscFrequency,
    value: FoldedValue,
    facts: &Facts,
) -> io::Result<()> {
    let correction = outcome.correction.as_ref();
    let mut lines: Vec<(String, i128)> = Vec::new();
    let (mut negative, mut negative_ns) = (0u64, 0i128);
    for node in outcome.tree.nodes() {
        let number = match value {
            FoldedValue::Calls => i128::from(node.entries),
            FoldedValue::OwnNs => {
                let ticks = tree::own(node, correction);
                ticks * 1_000_000_000 / i128::from(frequency.0.max(1))
            }
        };
        match number {
            0 => {}
            n if n < 0 => (negative, negative_ns) = (negative + 1, negative_ns + n),
            n => lines.push((stack(names, outcome, node), n)),
        }
    }
    lines.sort();
    let what = match (value, correction) {
        (FoldedValue::Calls, _) => "calls that began",
        (FoldedValue::OwnNs, Some(_)) => "own time, ns, median probe cost taken out",
        (FoldedValue::OwnNs, None) => "own time, ns, as measured",
    };
    writeln!(out, "# {what}")?;
    for fact in facts.matters() {
        let text = printable(&format!("{}: {}", fact.name, fact.text()));
        writeln!(out, "# {text} (missing or doubtful)")?;
    }
    if negative > 0 {
        writeln!(
            out,
            "# {negative} stacks are left out: their own time is negative, {negative_ns} ns in all"
        )?;
    }
    for (stack, number) in lines {
        writeln!(out, "{stack} {number}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn names_do_not_make_frames_or_lines() {
        assert_eq!(frame("fill(&mut [u8; 4])"), "fill(&mut [u8: 4])");
        assert_eq!(frame("a\nb 12"), r"a\x0ab 12");
    }
}
