//! Writes the patch table into the arena.
use super::error::LiveError;
use super::table::{PatchTable, STATE_AT, State, TABLE_BYTES_AT_MOST};
use std::fs::File;
use std::os::unix::fs::FileExt;

pub(super) fn set_state(pid: i32, arena: &File, state: State) -> Result<(), LiveError> {
    arena
        .write_all_at(&(state as u32).to_le_bytes(), STATE_AT)
        .map_err(LiveError::io(pid, "writing the patch table"))
}

pub(super) fn write_table(
    pid: i32,
    arena: &File,
    table: &PatchTable,
    state: State,
) -> Result<(), LiveError> {
    write_table_bytes(pid, arena, table, &table.to_bytes(state))
}

pub(super) fn write_table_bytes(
    pid: i32,
    arena: &File,
    table: &PatchTable,
    bytes: &[u8],
) -> Result<(), LiveError> {
    if bytes.len() as u64 > TABLE_BYTES_AT_MOST {
        let source =
            std::io::Error::other("the patch table is larger than 256 MiB; choose fewer functions");
        return Err(LiveError::io(pid, "writing the patch table")(source));
    }
    if bytes.len() as u64 > table.header.len {
        let source = std::io::Error::other("the patch table is larger than its place");
        return Err(LiveError::io(pid, "writing the patch table")(source));
    }
    arena
        .write_all_at(bytes, 0)
        .map_err(LiveError::io(pid, "writing the patch table"))
}
