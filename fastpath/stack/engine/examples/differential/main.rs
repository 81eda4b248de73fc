//! Random socket calls on both ends of a connection: between two of the kernel's sockets, and with one end on the engine, over a
//! TAP device. Bytes, ends, errors and readiness have to be the same.
//!
//!     ip netns exec NAME differential PROGRAMS SEED
//!
//! prints each program whose results differ, and how many of all did. The namespace must be a new one: `tap-diff` is created in it.
mod engine_end;
mod kernel_end;
mod program;
mod wires;

use program::Program;
use std::process::ExitCode;
use wires::{Sides, Wires};

/// What the calls of a program gave, a line each.
fn results(wires: &mut Wires, sides: Sides, program: &Program) -> Result<Vec<String>, String> {
    let mut ends = wires.connect(sides)?;
    let mut lines = Vec::new();
    for (end, call) in program.calls() {
        let result = ends.call(wires, *end, *call);
        wires.settle(&ends);
        lines.push(format!("{end:?} {call:?}: {result}"));
    }
    ends.close(wires);
    Ok(lines)
}

/// One side's processing may come late on a busy machine: what differs is tried again, with more time for it.
fn differs(wires: &mut Wires, sides: Sides, program: &Program) -> Result<Option<String>, String> {
    let mut difference = String::new();
    for patience in [1, 10, 100] {
        wires.set_patience(patience);
        let expected = results(wires, Sides::BothKernel, program)?;
        let got = results(wires, sides, program)?;
        if expected == got {
            wires.set_patience(1);
            return Ok(None);
        }
        difference = format!("{sides:?}, program {}:\n", program.seed());
        for (kernel, engine) in expected.iter().zip(&got) {
            let mark = if kernel == engine { ' ' } else { '!' };
            difference += &format!("{mark} {kernel}");
            if kernel != engine {
                difference += &format!("   here: {engine}");
            }
            difference.push('\n');
        }
    }
    wires.set_patience(1);
    Ok(Some(difference))
}

fn run(programs: u64, seed: u64) -> Result<u64, String> {
    let mut wires = Wires::open()?;
    let mut different = 0;
    for n in 0..programs {
        let program = Program::random(seed.wrapping_add(n));
        for sides in [Sides::EngineListens, Sides::EngineConnects] {
            if let Some(text) = differs(&mut wires, sides, &program)? {
                different += 1;
                print!("{text}");
            }
        }
    }
    Ok(different)
}

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).flat_map(|a| a.parse()).collect();
    let [programs, seed] = numbers[..] else {
        eprintln!("usage: differential PROGRAMS SEED");
        return ExitCode::from(2);
    };
    match run(programs, seed) {
        Ok(different) => {
            println!("{} of {} differ", different, 2 * programs);
            ExitCode::from(u8::from(different > 0))
        }
        Err(error) => {
            eprintln!("differential: {error}");
            ExitCode::from(2)
        }
    }
}
