//! One ELF file: loaded once, shared by every process that maps it.
use super::branches::BranchTargets;
use super::eh_frame::{self, Fde};
use super::error::LocateError;
use super::fragments;
use super::functions::{Function, Symbols};
use super::mapped::{self, MappedModule};
use super::plt::Imports;
use super::signature::Debug;
use super::source::{self, Lines};
use object::{Architecture, Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionFlags, elf};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub struct Image {
    path: PathBuf,
    data: Vec<u8>,
    build_id: String,
    functions: Vec<Function>,
    /// Executable sections but for stubs and start-up code: address range, place in the file.
    texts: Vec<(Range<u64>, usize)>,
    svma_range: Range<u64>,
    entry_point: u64,
    /// Descriptors of restartable sequences (`__rseq_cs`).
    rseq_descriptors: Option<Range<u64>>,
    imports: Imports,
    throws: bool,
    loader: bool,
    unwinder: bool,
    debug_file: Option<PathBuf>,
    /// Device and inode, to tell a replaced file.
    identity: (u64, u64),
    branches: OnceLock<BranchTargets>,
    /// Of functions and their pieces, ascending: where linear decoding starts anew.
    starts: Vec<u64>,
}

/// No program's code lies above (x86-64 user half).
const USER_END: u64 = 1 << 47;

/// What a module that raises exceptions or panics imports or defines.
const THROWERS: [&str; 6] = [
    "__cxa_throw",
    "__cxa_rethrow",
    "_Unwind_RaiseException",
    "_Unwind_Resume",
    "__gxx_personality_v0",
    "rust_eh_personality",
];

impl Image {
    pub fn open(path: &Path) -> Result<Image, LocateError> {
        Image::read(path, path)
    }

    /// Opens what `pid` has mapped, and makes sure that it is that file.
    pub fn open_mapped(pid: i32, module: &MappedModule) -> Result<Image, LocateError> {
        let opened = mapped::file_of_placed(pid, module)?;
        Image::read(&opened, &module.path)
    }

    fn read(from: &Path, path: &Path) -> Result<Image, LocateError> {
        use std::os::unix::fs::MetadataExt;
        let failed = |source| LocateError::File {
            path: path.to_owned(),
            source,
        };
        let metadata = std::fs::metadata(from).map_err(failed)?;
        let data = std::fs::read(from).map_err(failed)?;
        Image::parse(path, data, (metadata.dev(), metadata.ino()))
    }

    /// Parses an ELF file held in memory.
    pub fn parse(path: &Path, data: Vec<u8>, identity: (u64, u64)) -> Result<Image, LocateError> {
        let not_elf = |e: object::Error| LocateError::NotElf {
            path: path.to_owned(),
            why: e.to_string(),
        };
        let file = object::File::parse(&*data).map_err(not_elf)?;
        if file.architecture() != Architecture::X86_64 || !file.is_64() {
            return Err(LocateError::NotX86_64 {
                path: path.to_owned(),
            });
        }
        let build_id = build_id(&file);
        let mut texts: Vec<(Range<u64>, usize)> = file
            .sections()
            .filter_map(|s| text_of(&s, data.len()))
            .collect();
        texts.sort_by_key(|(range, _)| range.start);
        let text_end = |at: u64| {
            texts
                .iter()
                .find(|(r, _)| r.contains(&at))
                .map(|(r, _)| r.end)
        };

        let mut symbols = Symbols::default();
        symbols.add(&file, false, &text_end);
        let mut debug_file = source::debug_file(&build_id, &file, path);
        if let Some(bytes) = debug_file.as_ref().and_then(|p| std::fs::read(p).ok()) {
            let parsed = object::File::parse(&*bytes).ok();
            match parsed.filter(|debug| source::belongs(debug, &bytes, &build_id, &file)) {
                Some(debug) => symbols.add(&debug, true, &text_end),
                None => debug_file = None,
            }
        }
        let fdes = eh_frame::fdes(&file);
        let (mut functions, orphans) = symbols.into_functions(&fdes, &text_end);
        let code: Vec<(Range<u64>, &[u8])> = texts
            .iter()
            .map(|(range, at)| {
                let len = (range.end - range.start) as usize;
                (range.clone(), &data[*at..*at + len])
            })
            .collect();
        let mut starts: Vec<u64> = functions.iter().map(|f| f.svma).collect();
        starts.extend(functions.iter().flat_map(|f| &f.fragments).map(|r| r.start));
        starts.extend(orphans.iter().map(|r| r.start));
        starts.sort_unstable();
        // Only pieces without a name to go by need to know who jumps, before any verdict does.
        let branches = OnceLock::new();
        if !orphans.is_empty() {
            let swept = BranchTargets::sweep(&code, &starts, &orphans);
            let by_start: HashMap<u64, &Fde> = fdes.iter().map(|f| (f.svma, f)).collect();
            fragments::attach_by_jumps(&mut functions, &orphans, swept.jumps(), &by_start);
            branches.get_or_init(|| swept);
        }
        let segments = || file.segments().filter(|s| s.size() > 0);
        let low = segments().map(|s| s.address()).min().unwrap_or(0);
        let high = segments()
            .map(|s| s.address().saturating_add(s.size()))
            .max()
            .unwrap_or(0);
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        let throws = file
            .dynamic_symbols()
            .chain(file.symbols())
            .any(|s| s.name().is_ok_and(|n| THROWERS.contains(&n)));
        let imports = Imports::read(&file);
        drop(code);
        Ok(Image {
            imports,
            loader: name.starts_with("ld-") || name.starts_with("ld.so"),
            unwinder: name.starts_with("libgcc_s.so") || name.starts_with("libunwind"),
            path: path.to_owned(),
            build_id,
            functions,
            svma_range: low..high,
            entry_point: file.entry(),
            rseq_descriptors: file
                .section_by_name("__rseq_cs")
                .map(|s| s.address()..s.address().saturating_add(s.size())),
            throws,
            debug_file,
            identity,
            branches,
            starts,
            texts: texts.clone(),
            data,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn build_id(&self) -> &str {
        &self.build_id
    }

    /// Ascending by address.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Whether `svma` is a descriptor of a restartable sequence.
    pub fn is_rseq_descriptor(&self, svma: u64) -> bool {
        self.rseq_descriptors
            .as_ref()
            .is_some_and(|r| r.contains(&svma))
    }

    /// Lowest to highest address of any segment.
    pub fn svma_range(&self) -> Range<u64> {
        self.svma_range.clone()
    }

    /// Bytes of an executable section.
    pub fn bytes(&self, svma: Range<u64>) -> Option<&[u8]> {
        let (range, offset) = self
            .texts
            .iter()
            .find(|(r, _)| r.contains(&svma.start) && svma.end <= r.end)?;
        let from = offset + (svma.start - range.start) as usize;
        self.data
            .get(from..from + svma.end.checked_sub(svma.start)? as usize)
    }

    /// Start of the next function after `svma`, or the end of its section.
    pub fn next_function(&self, svma: u64) -> Option<u64> {
        let end = self.texts.iter().find(|(r, _)| r.contains(&svma))?.0.end;
        let next = self.functions.partition_point(|f| f.svma <= svma);
        Some(self.functions.get(next).map_or(end, |f| f.svma.min(end)))
    }

    pub fn branch_targets(&self) -> &BranchTargets {
        self.branches.get_or_init(|| {
            let texts: Vec<(Range<u64>, &[u8])> = self
                .texts
                .iter()
                .filter_map(|(range, _)| Some((range.clone(), self.bytes(range.clone())?)))
                .collect();
            BranchTargets::sweep(&texts, &self.starts, &[])
        })
    }

    pub fn throws_exceptions(&self) -> bool {
        self.throws
    }

    /// Where the kernel or the loader enters the program; 0 in most libraries.
    pub fn entry_point(&self) -> u64 {
        self.entry_point
    }

    pub fn is_dynamic_loader(&self) -> bool {
        self.loader
    }

    pub fn is_unwinder(&self) -> bool {
        self.unwinder
    }

    /// Name of what a direct call goes to: a function of this file, or an import behind a stub.
    pub fn callee_name(&self, target: u64) -> Option<&str> {
        self.imports.stub(target).or_else(|| {
            let i = self
                .functions
                .binary_search_by_key(&target, |f| f.svma)
                .ok()?;
            Some(self.functions[i].raw_name.as_str())
        })
    }

    /// Symbol that the linker puts into a GOT slot.
    pub fn slot_symbol(&self, slot: u64) -> Option<&str> {
        self.imports.slot(slot)
    }

    /// Reads the DWARF; keep the result for many look-ups.
    pub fn lines(&self) -> Option<Lines> {
        let file = object::File::parse(&*self.data).ok()?;
        if file.section_by_name(".debug_info").is_some() {
            return Lines::load(&file);
        }
        let debug = std::fs::read(self.debug_file.as_ref()?).ok()?;
        Lines::load(&object::File::parse(&*debug).ok()?)
    }

    /// Parameters and types; `None` without debugging information.
    pub fn debug(&self) -> Option<Debug> {
        let file = object::File::parse(&*self.data).ok()?;
        if file.section_by_name(".debug_info").is_some() {
            return Debug::load(&file);
        }
        let debug = std::fs::read(self.debug_file.as_ref()?).ok()?;
        Debug::load(&object::File::parse(&*debug).ok()?)
    }

    /// Whether this is the very file that a process has mapped.
    pub fn is_mapped_by(&self, pid: i32, module: &MappedModule) -> bool {
        mapped::identity_of(pid, module) == Some(self.identity)
    }
}

/// Hex of the GNU build id note, empty without one.
pub(super) fn build_id(file: &object::File) -> String {
    let id = file.build_id().ok().flatten().unwrap_or_default();
    id.iter().map(|b| format!("{b:02x}")).collect()
}

/// Executable sections that hold functions.
fn text_of<'d>(s: &impl ObjectSection<'d>, file_len: usize) -> Option<(Range<u64>, usize)> {
    let SectionFlags::Elf { sh_flags } = s.flags() else {
        return None;
    };
    let name = s.name().unwrap_or_default();
    let stubs = name.starts_with(".plt") || name == ".init" || name == ".fini";
    if sh_flags & elf::SHF_EXECINSTR as u64 == 0 || stubs {
        return None;
    }
    let (offset, len) = s.file_range()?;
    let inside = offset.checked_add(len)? <= file_len as u64;
    // Also keeps every later sum of an address and a size from overflowing.
    let user = s.address().checked_add(len)? <= USER_END;
    let end = s.address().checked_add(len)?;
    (inside && user && len > 0).then_some((s.address()..end, offset as usize))
}

/// Entry for fuzzers.
pub fn fuzz_image(bytes: &[u8]) {
    if let Ok(image) = Image::parse(Path::new("fuzz"), bytes.to_vec(), (0, 0)) {
        let _ = image.branch_targets();
        for f in image.functions() {
            let _ = crate::relocate::verdict::accept(&image, f, Default::default());
        }
    }
}
