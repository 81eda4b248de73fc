//! One ELF file: loaded once, shared by every process that maps it.
use super::bounds;
use super::branches::BranchTargets;
use super::call_graph::CallGraph;
use super::caller_sensitive::CallerSensitive;
use super::eh_frame::{self, Fde};
use super::error::LocateError;
use super::files::{self, Links};
use super::fragments;
use super::frame_rules::FrameRules;
use super::functions::{Function, NameSource, Sorted, Symbols};
use super::known_addresses::{Known, KnownAddresses};
use super::mapped::{self, MappedModule};
use super::names;
use super::parts;
use super::plt::Imports;
use super::signature::Debug;
use super::slot_reads::SlotReads;
use super::source::{self, Lines};
use super::stack_walkers;
use super::unwinds::UnwindFacts;
use super::version::Version;
use object::{Architecture, Object, ObjectSection, ObjectSegment};
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, RwLock};

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
    known: KnownAddresses,
    unwinds: UnwindFacts,
    walker: Option<&'static str>,
    /// Of a runtime that walks stacks, in code that can be measured.
    built_in: Option<(Range<u64>, &'static str)>,
    /// [`Image::calls`].
    pub(super) call_graph: OnceLock<CallGraph>,
    loader: bool,
    unwinder: bool,
    debug_file: Option<PathBuf>,
    /// Device and inode, to tell a replaced file.
    identity: (u64, u64),
    version: Version,
    branches: OnceLock<BranchTargets>,
    pub(super) slot_reads: OnceLock<SlotReads>,
    /// Of functions and their pieces, ascending: where linear decoding starts anew.
    starts: Vec<u64>,
    /// With what the other modules of the process say; of this one alone until they are asked.
    sensitive: RwLock<Option<Arc<CallerSensitive>>>,
}

/// No program's code lies above (x86-64 user half).
const USER_END: u64 = 1 << 47;

impl Image {
    pub fn open(path: &Path) -> Result<Image, LocateError> {
        let failed = |source| LocateError::File {
            path: path.to_owned(),
            source,
        };
        let file = files::open_regular(path, Links::Follow).map_err(failed)?;
        Image::read(&file, path)
    }

    /// Opens what `pid` has mapped, and makes sure that it is that file.
    pub fn open_mapped(pid: i32, module: &MappedModule) -> Result<Image, LocateError> {
        let opened = mapped::file_of_placed(pid, module)?;
        Image::read(&opened, &module.path)
    }

    fn read(from: &File, path: &Path) -> Result<Image, LocateError> {
        use std::os::unix::fs::MetadataExt;
        let failed = |source| LocateError::File {
            path: path.to_owned(),
            source,
        };
        let metadata = from.metadata().map_err(failed)?;
        let data = files::read_whole(from).map_err(failed)?;
        let image = Image::parse(path, data, (metadata.dev(), metadata.ino()))?;
        Ok(Image {
            version: Version::of(&metadata),
            ..image
        })
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
        bounds::check(&file, data.len()).map_err(|why| LocateError::NotElf {
            path: path.to_owned(),
            why,
        })?;
        let build_id = source::build_id(&file);
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
        let separate = source::debug_file(&build_id, &file, path);
        if let Some((_, bytes)) = &separate
            && let Ok(debug) = object::File::parse(&**bytes)
        {
            symbols.add(&debug, true, &text_end);
        }
        let debug_file = separate.map(|(path, _)| path);
        let fdes = eh_frame::fdes(&file);
        let sorted = symbols.sorted(&fdes, &text_end);
        let code: Vec<(Range<u64>, &[u8])> = texts
            .iter()
            .map(|(range, at)| {
                let len = (range.end - range.start) as usize;
                (range.clone(), &data[*at..*at + len])
            })
            .collect();
        let sweep = |starts: &[u64]| BranchTargets::sweep(&code, starts);
        let (functions, starts, branches) = assemble(sorted, &fdes, sweep);
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
        let unwinds = UnwindFacts::read(&file, path, &fdes);
        let walker = stack_walkers::find(&file);
        let built_in = stack_walkers::built_in(&file);
        let imports = Imports::read(&file);
        let ranges: Vec<Range<u64>> = texts.iter().map(|(range, _)| range.clone()).collect();
        let known = KnownAddresses::read(&file, &ranges, imports.pointers());
        drop(code);
        Ok(Image {
            imports,
            known,
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
            unwinds,
            walker,
            built_in,
            call_graph: OnceLock::new(),
            debug_file,
            identity,
            version: Version::default(),
            branches,
            slot_reads: OnceLock::new(),
            starts,
            sensitive: RwLock::new(None),
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

    /// Start of the next function or piece of one after `svma`, or the end of its section.
    pub fn next_function(&self, svma: u64) -> Option<u64> {
        let end = self.texts.iter().find(|(r, _)| r.contains(&svma))?.0.end;
        let next = self.starts.partition_point(|start| *start <= svma);
        Some(self.starts.get(next).map_or(end, |start| end.min(*start)))
    }

    pub fn branch_targets(&self) -> &BranchTargets {
        self.branches.get_or_init(|| {
            let texts: Vec<(Range<u64>, &[u8])> = self
                .texts
                .iter()
                .filter_map(|(range, _)| Some((range.clone(), self.bytes(range.clone())?)))
                .collect();
            BranchTargets::sweep(&texts, &self.starts)
        })
    }

    /// Whether `function` may be entered by a jump while the bytes below the stack pointer are in
    /// use (the red zone): something jumps there, or it has no name and is not known to be called.
    pub fn may_be_jumped_to(&self, function: &Function) -> bool {
        let branches = self.branch_targets();
        let is_nameless = function.source == NameSource::EhFrame;
        branches.is_jumped_to(function.svma) || is_nameless && !branches.is_called(function.svma)
    }

    /// The file's stack unwinding facts.
    pub fn unwinds(&self) -> &UnwindFacts {
        &self.unwinds
    }

    /// Why the code at `svma` cannot be moved: its own runtime walks or moves the stacks it runs on.
    pub fn stack_walker(&self, svma: u64) -> Option<&'static str> {
        let built_in = self.built_in.as_ref();
        let built_in = built_in.filter(|(range, _)| range.contains(&svma));
        self.walker.or(built_in.map(|(_, why)| *why))
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

    /// Addresses in `range` that something other than a branch knows.
    pub fn known_within(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Known)> {
        self.known.within(self.branch_targets(), range)
    }

    /// Whether a pointer to `svma` lies in the data of a position-independent file.
    pub fn is_pointed_to(&self, svma: u64) -> bool {
        self.imports.is_pointed_to(svma)
    }

    /// Whether its data holds the address of what a symbol of this name is bound to.
    pub fn is_symbol_pointed_to(&self, name: &str) -> bool {
        self.imports.is_symbol_pointed_to(name)
    }

    /// Names of what the dynamic linker binds, some more than once.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.imports.names()
    }

    /// Name of the import behind a stub.
    pub fn stub_symbol(&self, target: u64) -> Option<&str> {
        self.imports.stub(target)
    }

    /// Names of all imports, versions not included.
    pub fn imported(&self) -> impl Iterator<Item = &str> {
        self.imports.names()
    }

    /// What was learned last; `None` before anybody looked.
    pub fn known_sensitive(&self) -> Option<Arc<CallerSensitive>> {
        let known = self.sensitive.read().unwrap_or_else(|e| e.into_inner());
        known.clone()
    }

    pub fn learn_sensitive(&self, found: CallerSensitive) {
        let mut known = self.sensitive.write().unwrap_or_else(|e| e.into_inner());
        *known = Some(Arc::new(found));
    }

    /// Symbol that the linker puts into a GOT slot.
    pub fn slot_symbol(&self, slot: u64) -> Option<&str> {
        self.imports.slot(slot)
    }

    /// What unwinds its functions, for a process that has it mapped at `bias` above its own addresses.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn unwind_tables(
        &self,
        bias: u64,
    ) -> Result<hopscope_unwind::Module<'_>, hopscope_unwind::Refused> {
        let file =
            object::File::parse(&*self.data).map_err(|_| hopscope_unwind::Refused::Machine)?;
        hopscope_unwind::Module::read(&file, bias)
    }

    /// Parsed again: what is asked for once is not kept.
    pub(super) fn file(&self) -> Option<object::File<'_>> {
        object::File::parse(&*self.data).ok()
    }

    /// All code, cut where a function or a piece of one begins: address and bytes.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.texts.iter().flat_map(|(range, _)| {
            let first = self.starts.partition_point(|start| *start <= range.start);
            let end = self.starts.partition_point(|start| *start < range.end);
            let starts = self.starts[first..end].iter().copied();
            let ends = starts.clone().chain([range.end]);
            let from = [range.start].into_iter().chain(starts);
            from.zip(ends)
                .filter_map(|(from, to)| Some((from, self.bytes(from..to)?)))
        })
    }

    /// Addresses that the dynamic linker writes into data.
    pub(super) fn pointers(&self) -> &[u64] {
        self.imports.pointers()
    }

    /// Whether it has sections: a file can be run without, and nothing says then where what lies.
    pub fn has_sections(&self) -> bool {
        self.file().is_some_and(|f| f.sections().next().is_some())
    }

    /// Whether it lies in a stub of the procedure linkage table.
    pub fn is_stub(&self, svma: u64) -> bool {
        self.imports.is_stub(svma)
    }

    /// Reads the DWARF; keep the result for many look-ups.
    pub fn lines(&self) -> Option<Lines> {
        let file = object::File::parse(&*self.data).ok()?;
        if file.section_by_name(".debug_info").is_some() {
            return Lines::load(&file, &self.path);
        }
        let (from, debug) = self.debug_file_again(&file)?;
        Lines::load(&object::File::parse(&*debug).ok()?, from)
    }

    /// Parameters and types; `None` without debugging information.
    pub fn debug(&self) -> Option<Debug> {
        let file = object::File::parse(&*self.data).ok()?;
        if file.section_by_name(".debug_info").is_some() {
            return Debug::load(&file, &self.path);
        }
        let (from, debug) = self.debug_file_again(&file)?;
        Debug::load(&object::File::parse(&*debug).ok()?, from)
    }

    /// How the frame address is found in what covers any of `ranges`.
    pub fn frame_rules(&self, ranges: &[Range<u64>]) -> FrameRules {
        match object::File::parse(&*self.data) {
            Ok(file) => FrameRules::read(&file, ranges),
            Err(_) => FrameRules::default(),
        }
    }

    /// Not kept in memory; it may be another one by now.
    fn debug_file_again(&self, file: &object::File) -> Option<(&Path, Vec<u8>)> {
        let path = self.debug_file.as_deref()?;
        let bytes = source::read_debug_file(path, &self.build_id, file)?;
        Some((path, bytes))
    }

    /// Whether this is the very file that a process has mapped.
    pub fn is_mapped_by(&self, pid: i32, module: &MappedModule) -> bool {
        mapped::identity_of(pid, module) == Some((self.identity, self.version))
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }
}

/// Gives every piece to its function. Who jumps has to be known before any verdict only where
/// pieces have no name to go by, or one that may be a function's. Also returns where functions and
/// pieces begin, ascending.
fn assemble(
    sorted: Sorted,
    fdes: &[Fde],
    sweep: impl Fn(&[u64]) -> BranchTargets,
) -> (Vec<Function>, Vec<u64>, OnceLock<BranchTargets>) {
    let by_start: HashMap<u64, &Fde> = fdes.iter().map(|f| (f.svma, f)).collect();
    let Sorted {
        mut functions,
        mut pieces,
        mut parts,
    } = sorted;
    let mut starts: Vec<u64> = functions.iter().map(|f| f.svma).collect();
    starts.extend(pieces.iter().map(|(_, r)| r.start));
    starts.extend(parts.iter().map(|r| r.start));
    starts.sort_unstable();
    starts.dedup();
    let branches = OnceLock::new();
    if pieces.iter().any(|(name, _)| names::is_numbered(name)) {
        let swept = branches.get_or_init(|| sweep(&starts));
        let called = pieces.extract_if(.., |(_, range)| swept.is_called(range.start));
        functions.extend(called.map(|(name, range)| Function::of_piece(name, range, &by_start)));
        functions.sort_by_key(|f| f.svma);
        functions.dedup_by_key(|f| f.svma);
    }
    parts.extend(fragments::attach_by_name(&mut functions, pieces, &by_start));
    parts.sort_by_key(|range| range.start);
    parts.dedup();
    let nameless = |f: &Function| f.source == NameSource::EhFrame;
    if !parts.is_empty() || functions.iter().any(nameless) {
        let swept = branches.get_or_init(|| sweep(&starts));
        functions = parts::assign(functions, &parts, swept, &by_start);
    }
    (functions, starts, branches)
}

/// Executable sections that hold functions.
fn text_of<'d>(s: &impl ObjectSection<'d>, file_len: usize) -> Option<(Range<u64>, usize)> {
    let name = s.name().unwrap_or_default();
    let stubs = name.starts_with(".plt") || name == ".init" || name == ".fini";
    if !bounds::is_code(s) || stubs {
        return None;
    }
    let (offset, len) = s.file_range()?;
    let inside = offset.checked_add(len)? <= file_len as u64;
    // Also keeps every later sum of an address and a size from overflowing.
    let user = s.address().checked_add(len)? <= USER_END;
    let end = s.address().checked_add(len)?;
    (inside && user && len > 0).then_some((s.address()..end, offset as usize))
}
