//! The ELF file: everything lies at the address that it has in the process. Segments lie at their offsets in the arena, which
//! is where perf looks for them; what names them is in front and behind.
use hopscope_unwind::Refused;
use std::ops::Range;

/// `.text` of one segment.
pub(super) struct Segment {
    pub(super) code: Range<u64>,
    /// Behind the tables.
    pub(super) end: u64,
    pub(super) offset: u64,
}

#[derive(Default)]
pub(super) struct Image {
    segments: Vec<Segment>,
    /// `Elf64_Sym`, and the names.
    symbols: Vec<u8>,
    names: Vec<u8>,
    debug_frame: Vec<u8>,
    /// `.eh_frame_hdr` and `.eh_frame` of the first segment that has tables: perf knows one of each.
    tables: Option<Tables>,
}

struct Tables {
    segment: usize,
    at: u64,
    eh_frame_at: u64,
}

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    at: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    entry: u64,
}

const EHDR: u64 = 64;
const PHDR: u64 = 56;
const SYM: u64 = 24;
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const ALLOC: u64 = 2;
const EXEC: u64 = 4;

impl Image {
    pub(super) fn segment(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    /// Of the last segment. Local: nobody is to find the copy where it looks for the original.
    pub(super) fn symbol(&mut self, name: &str, range: Range<u64>) {
        const LOCAL_FUNCTION: u8 = 2;
        let section = self.segments.len() as u16;
        // The name at 0 is none.
        self.symbols
            .extend((self.names.len() as u32 + 1).to_le_bytes());
        self.symbols.extend([LOCAL_FUNCTION, 0]);
        self.symbols.extend(section.to_le_bytes());
        self.symbols.extend(range.start.to_le_bytes());
        self.symbols.extend((range.end - range.start).to_le_bytes());
        self.names.extend(name.bytes().filter(|b| *b != 0));
        self.names.push(0);
    }

    /// Unwind tables of the last segment.
    pub(super) fn tables(&mut self, at: u64, tables: &[u8]) -> Result<(), Refused> {
        hopscope_unwind::debug_frame(tables, at, &mut self.debug_frame)?;
        let way = tables.get(4..).and_then(|t| t.first_chunk());
        let way = way.map_or(0, |w| i32::from_le_bytes(*w));
        self.tables.get_or_insert(Tables {
            segment: self.segments.len() - 1,
            at,
            eh_frame_at: (at + 4).wrapping_add_signed(way.into()),
        });
        Ok(())
    }

    fn sections(&self) -> Vec<Section> {
        let alloc = |name, flags, at: u64, end: u64, segment: &Segment| Section {
            name,
            kind: PROGBITS,
            flags,
            at,
            offset: segment.offset + (at - segment.code.start),
            size: end - at,
            link: 0,
            info: 0,
            entry: 0,
        };
        // By their place: symbols name them.
        let mut sections: Vec<Section> = (self.segments.iter())
            .map(|s| alloc(".text", ALLOC | EXEC, s.code.start, s.code.end, s))
            .collect();
        if let Some(tables) = &self.tables {
            let s = &self.segments[tables.segment];
            let (at, eh_frame_at) = (tables.at, tables.eh_frame_at);
            sections.push(alloc(".eh_frame_hdr", ALLOC, at, eh_frame_at, s));
            sections.push(alloc(".eh_frame", ALLOC, eh_frame_at, s.end, s));
        }
        sections
    }

    /// What comes at the beginning of the file, and what comes behind the segments, at `end`.
    pub(super) fn finish(mut self, end: u64) -> (Vec<u8>, Vec<u8>) {
        let mut sections = self.sections();
        let mut tail = Vec::new();
        let names = sections.len() as u32 + 3;
        // The first symbol is none.
        let mut symbols = vec![0; SYM as usize];
        symbols.append(&mut self.symbols);
        let count = symbols.len() as u64 / SYM;
        let debug_frame = std::mem::take(&mut self.debug_frame);
        self.names.insert(0, 0);
        let mut section_names = vec![0];
        for (name, bytes, kind, link, info, entry) in [
            (".debug_frame", debug_frame, PROGBITS, 0, 0, 0),
            (".symtab", symbols, SYMTAB, names, count as u32, SYM),
            (".strtab", std::mem::take(&mut self.names), STRTAB, 0, 0, 0),
        ] {
            tail.resize(tail.len().next_multiple_of(8), 0);
            sections.push(Section {
                name,
                kind,
                flags: 0,
                at: 0,
                offset: end + tail.len() as u64,
                size: bytes.len() as u64,
                link,
                info,
                entry,
            });
            tail.extend(bytes);
        }
        let mut headers = vec![0; 64];
        let mut name_of = |name: &str| {
            let at = section_names.len() as u32;
            section_names.extend(name.bytes());
            section_names.push(0);
            at
        };
        for section in &sections {
            section.write(name_of(section.name), &mut headers);
        }
        let own_name = name_of(".shstrtab");
        Section {
            name: "",
            kind: STRTAB,
            flags: 0,
            at: 0,
            offset: end + tail.len() as u64,
            size: section_names.len() as u64,
            link: 0,
            info: 0,
            entry: 0,
        }
        .write(own_name, &mut headers);
        tail.extend(section_names);
        tail.resize(tail.len().next_multiple_of(8), 0);
        let headers_at = end + tail.len() as u64;
        tail.extend(headers);
        (self.head(headers_at, sections.len() as u16 + 2), tail)
    }

    /// `Elf64_Ehdr` and `Elf64_Phdr`s.
    fn head(&self, sections_at: u64, sections: u16) -> Vec<u8> {
        let mut out = b"\x7fELF\x02\x01\x01".to_vec();
        out.resize(16, 0);
        // ET_EXEC: addresses are those of the process. EM_X86_64.
        out.extend([2, 0, 62, 0, 1, 0, 0, 0]);
        for word in [0, EHDR, sections_at] {
            out.extend(word.to_le_bytes());
        }
        // Of the segment with tables: where the beginning of the arena would be mapped beside it. perf counts from there.
        let tables = self.tables.as_ref().map_or(0, |t| t.segment);
        let tables = self.segments.get(tables);
        let beginning = tables.and_then(|s| s.code.start.checked_sub(s.offset));
        let loads = (beginning.iter().map(|at| (0, *at, EHDR)))
            .chain((self.segments.iter()).map(|s| (s.offset, s.code.start, s.end - s.code.start)));
        let loads: Vec<_> = loads.collect();
        out.extend([0; 4]);
        let count = loads.len() as u16;
        for half in [EHDR as u16, PHDR as u16, count, 64, sections, sections - 1] {
            out.extend(half.to_le_bytes());
        }
        for (offset, at, size) in loads {
            // PT_LOAD, readable and executable.
            out.extend([1, 0, 0, 0, 5, 0, 0, 0]);
            for word in [offset, at, at, size, size, 4096] {
                out.extend(word.to_le_bytes());
            }
        }
        out
    }
}

impl Section {
    fn write(&self, name: u32, out: &mut Vec<u8>) {
        out.extend(name.to_le_bytes());
        out.extend(self.kind.to_le_bytes());
        for word in [self.flags, self.at, self.offset, self.size] {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.link.to_le_bytes());
        out.extend(self.info.to_le_bytes());
        for word in [8, self.entry] {
            out.extend(word.to_le_bytes());
        }
    }
}
