//! Program headers alone: enough to say where a file lies in a process, without reading it whole.
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub svma: u64,
    pub offset: u64,
    pub file_size: u64,
}

#[derive(Debug)]
pub struct Segments {
    pub executable: Vec<Segment>,
    /// Of all loaded segments, `.bss` included.
    pub svma_range: Range<u64>,
}

const EHDR_BYTES: usize = 64;
const PHDR_BYTES: usize = 56;
const PT_LOAD: u64 = 1;
const PF_X: u64 = 1;

/// ELF64 little-endian (gABI, chapter 5): e_phoff at 32, e_phentsize at 54, e_phnum at 56; in a
/// program header p_type 0, p_flags 4, p_offset 8, p_vaddr 16, p_filesz 32, p_memsz 40.
///
/// # Errors
/// In words, what is wrong with the file.
pub fn executable_segments(file: &File) -> Result<Segments, String> {
    let mut ehdr = [0; EHDR_BYTES];
    file.read_exact_at(&mut ehdr, 0)
        .map_err(|e| e.to_string())?;
    if ehdr[..6] != *b"\x7fELF\x02\x01" {
        return Err("no 64-bit ELF header".into());
    }
    if field(&ehdr, 54, 2) != PHDR_BYTES as u64 {
        return Err("no ELF program headers".into());
    }
    let mut table = vec![0; field(&ehdr, 56, 2) as usize * PHDR_BYTES];
    file.read_exact_at(&mut table, field(&ehdr, 32, 8))
        .map_err(|e| e.to_string())?;
    let loaded = || {
        table
            .chunks_exact(PHDR_BYTES)
            .filter(|p| field(p, 0, 4) == PT_LOAD)
    };
    let low = loaded().map(|p| field(p, 16, 8)).min();
    let high = loaded()
        .map(|p| field(p, 16, 8).saturating_add(field(p, 40, 8)))
        .max();
    let executable = loaded()
        .filter(|p| field(p, 4, 4) & PF_X != 0)
        .map(|p| Segment {
            svma: field(p, 16, 8),
            offset: field(p, 8, 8),
            file_size: field(p, 32, 8),
        });
    match (low, high) {
        (Some(low), Some(high)) => Ok(Segments {
            executable: executable.collect(),
            svma_range: low..high,
        }),
        _ => Err("no loaded segment".into()),
    }
}

fn field(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_one_executable_segment_that_holds_this_function() {
        let segments = executable_segments(&File::open("/proc/self/exe").unwrap()).unwrap();
        let base = crate::locate::mapped_modules(std::process::id() as i32).unwrap();
        let exe = std::env::current_exe().unwrap();
        let bias = base.iter().find(|m| m.path == exe).unwrap().bias;
        let here = (field as fn(&[u8], usize, usize) -> u64 as usize as u64).wrapping_sub(bias);
        let holds = |s: &&Segment| s.svma <= here && here < s.svma + s.file_size;
        assert_eq!(segments.executable.iter().filter(holds).count(), 1);
        assert!(segments.svma_range.contains(&here));
    }

    #[test]
    fn other_files_are_refused() {
        assert!(executable_segments(&File::open("/etc/passwd").unwrap()).is_err());
        assert!(executable_segments(&File::open("/dev/null").unwrap()).is_err());
    }
}
