//! One packet as a waterfall: a bar for each part of its way, one below the other, on one axis.
use super::text::Text;
use crate::recording::Names;
use crate::slice::SHOWN;
use crate::slice::SliceClosing;
use crate::slice::text::{us, value};
use hopscope_analyze::slice::{Beside, PacketSlices, Sides, TimedCall};
use hopscope_event::slice::Sliced;
use std::io::{self, Write};

const WIDTH: f64 = 900.0;
/// Of it, for the words behind the longest bar.
const WORDS: f64 = 340.0;
const ROW: f64 = 17.0;

/// One bar.
struct Bar {
    from_ns: u64,
    len_ns: u64,
    hue: u8,
    words: String,
    title: String,
}

/// The functions on both sides of a packet, and what they are called.
pub(super) struct WithFunctions<'a> {
    pub names: &'a Names<'a>,
    pub sides: &'a Sides,
}

pub(super) fn write(
    out: &mut impl Write,
    closing: &SliceClosing<'_>,
    (packet, slices): (&Sliced, &PacketSlices),
    functions: Option<&WithFunctions<'_>>,
) -> io::Result<()> {
    let source = &closing.source;
    writeln!(
        out,
        "<details><summary>{} {}: {}</summary>",
        Text(&value(source, &slices.whole)),
        Text(source.line_unit()),
        Text(&crate::slice::line_of(source, packet))
    )?;
    let mut bars = Vec::new();
    let mut left_out = 0;
    let mut side = |beside: Option<&Beside>, bars: &mut Vec<Bar>| {
        let (Some(beside), Some(functions)) = (beside, functions) else {
            return;
        };
        left_out += beside.calls.len().saturating_sub(SHOWN);
        let shown = beside.calls.iter().take(SHOWN);
        bars.extend(shown.map(|call| function(functions.names, call)));
    };
    side(
        functions.and_then(|f| f.sides.before_send.as_ref()),
        &mut bars,
    );
    bars.extend(kernel(closing, packet, slices));
    side(
        functions.and_then(|f| f.sides.after_receive.as_ref()),
        &mut bars,
    );
    svg(out, &bars)?;
    if left_out > 0 {
        writeln!(out, "<p>{left_out} more functions are not drawn.")?;
    }
    if let Some(functions) = functions {
        borders(out, functions)?;
    }
    writeln!(out, "</details>")
}

fn function(names: &Names<'_>, call: &TimedCall) -> Bar {
    let len_ns = call.to_ns.saturating_sub(call.from_ns);
    let name = names.qualified(call.function);
    Bar {
        from_ns: call.from_ns,
        len_ns,
        hue: 1,
        title: format!("{name}: {len_ns} ns as measured, at depth {}", call.depth),
        words: format!("{name} {}", us(len_ns)),
    }
}

fn kernel<'a>(
    closing: &'a SliceClosing<'_>,
    packet: &Sliced,
    slices: &'a PacketSlices,
) -> impl Iterator<Item = Bar> + 'a {
    let mut from_ns = packet.record.t0_ns;
    slices.pieces.iter().map(move |piece| {
        let name = closing.slicer.name(piece.name);
        let hue = match name.as_bytes() {
            [b't', b'x', b'.', ..] => 0,
            [b'r', b'x', b'.', ..] => 3,
            _ => 6,
        };
        let correction = piece.span.correction;
        let bar = Bar {
            from_ns,
            len_ns: piece.span.raw,
            hue,
            words: format!("{name} {}", value(&closing.source, &piece.span)),
            title: format!(
                "{name}: {}..{}, read {}, taken out {}, left {}",
                piece.from,
                piece.to,
                piece.span.raw,
                correction.map_or("?".to_owned(), |c| c.to_string()),
                piece.span.best()
            ),
        };
        from_ns = from_ns.saturating_add(piece.span.raw);
        bar
    })
}

fn svg(out: &mut impl Write, bars: &[Bar]) -> io::Result<()> {
    let begin = bars.iter().map(|b| b.from_ns).min().unwrap_or(0);
    let ends = bars.iter().map(|b| b.from_ns.saturating_add(b.len_ns));
    let whole = (ends.max().unwrap_or(0) - begin).max(1) as f64;
    let x = |ns: u64| ns as f64 / whole * (WIDTH - WORDS);
    let height = ROW * bars.len() as f64;
    write!(
        out,
        "<svg width={WIDTH} height={height} viewBox=\"0 0 {WIDTH} {height}\" class=chart role=img>"
    )?;
    for (row, bar) in bars.iter().enumerate() {
        let (left, wide) = (x(bar.from_ns - begin), x(bar.len_ns).max(1.0));
        let top = row as f64 * ROW;
        write!(
            out,
            "<g><title>{}</title>\
             <rect class=hue{} x={left:.1} y={:.1} width={wide:.1} height={:.1} />\
             <text x={:.1} y={:.1}>{}</text></g>",
            Text(&bar.title),
            bar.hue,
            top + 2.0,
            ROW - 4.0,
            left + wide + 6.0,
            top + ROW - 5.0,
            Text(&bar.words)
        )?;
    }
    writeln!(out, "</svg>")
}

fn borders(out: &mut impl Write, functions: &WithFunctions<'_>) -> io::Result<()> {
    let Sides {
        before_send,
        after_receive,
    } = functions.sides;
    let both = [
        (
            "between the program's last stamp and the sending call",
            before_send,
        ),
        (
            "between the receiving call's return and the program's next stamp",
            after_receive,
        ),
    ];
    for (what, beside) in both {
        let Some(border) = beside.as_ref().and_then(|b| b.border) else {
            continue;
        };
        let left = border
            .corrected()
            .map_or("not corrected".to_owned(), |left| {
                format!("{} us left of", us(left))
            });
        writeln!(out, "<p>{left} {} us read {what}.", us(border.raw))?;
    }
    for (what, beside) in [("sending", before_send), ("receiving", after_receive)] {
        let around = beside.as_ref().map_or(&[][..], |b| &b.around);
        if !around.is_empty() {
            let names: Vec<_> = around
                .iter()
                .map(|call| functions.names.qualified(call.function))
                .collect();
            writeln!(
                out,
                "<p>The {what} call was made in {}.",
                Text(&names.join(" > "))
            )?;
        }
    }
    Ok(())
}
