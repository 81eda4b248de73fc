//! Running a program once, for what only a program can read (bpf(2), BPF_PROG_TEST_RUN).
use crate::{BpfError, object};
use libbpf_rs::{Object, ProgramInput};

/// The program's return value for a packet of these bytes. `what` names the call in errors.
///
/// # Errors
/// There is no such program, or it cannot be run this way.
pub fn test_run(
    object: &Object,
    program: &str,
    packet: &[u8],
    what: &'static str,
) -> Result<u32, BpfError> {
    let input = ProgramInput {
        data_in: Some(packet),
        ..ProgramInput::default()
    };
    let output = object::program(object, program)?.test_run(input);
    Ok(output.map_err(BpfError::with_cause(what))?.return_value)
}
