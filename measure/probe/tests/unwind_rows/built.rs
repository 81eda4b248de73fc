//! A program with all its functions copied.
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace, FunctionId};
use hopscope_probe::instrument::body::inlined::{self, Asked, Called, Crossings};
use hopscope_probe::instrument::body::refusal::Refusal;
use hopscope_probe::instrument::body::unit::Insn;
use hopscope_probe::instrument::body::verdict::{ProcessTraits, accept};
use hopscope_probe::instrument::capture::{Capture, Chain, Reg, Scalar, Source};
use hopscope_probe::instrument::emit::probe::ProbeConfig;
use hopscope_probe::instrument::emit::slow::SlowConfig;
use hopscope_probe::live::build::{self, Linked, Selected, Unwind};
use hopscope_probe::locate::pattern::Pattern;
use hopscope_probe::locate::{Function, Image, Inlined};
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

pub const BIAS: u64 = 0x5555_0000_0000;

/// Edges into and out of inlined functions, and calls through pointers, by the address of the function that they are in; and
/// how many of both are timed.
#[derive(Default)]
pub struct Places(HashMap<u64, Crossings>, pub usize, pub usize);

pub struct Program {
    pub path: PathBuf,
    image: Image,
}

const SOURCES: [&str; 3] = ["steps.cpp", "ways.cpp", "anywhere.cpp"];

impl Program {
    /// The sources are programs of their own: their beginnings are renamed.
    pub fn build(flags: &[&str]) -> Program {
        static BUILDS: AtomicU32 = AtomicU32::new(0);
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unwind-rows-{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs/unwound");
        let mut objects = Vec::new();
        for source in SOURCES {
            let object = folder.join(source).with_extension("o");
            let mut compile = Command::new("g++");
            compile.args(["-std=c++17", "-fPIC", "-c"]).args(flags);
            let name = source.replace('.', "_");
            // Each in a name space of its own, but for what is declared in C.
            compile.arg(format!("-Dmain=main_of_{name}"));
            compile.arg(sources.join(source)).arg("-o").arg(&object);
            assert!(compile.status().unwrap().success(), "{source}");
            objects.push(object);
        }
        let path = folder.join("all.so");
        let mut link = Command::new("g++");
        link.args(["-shared", "-Wl,-z,muldefs", "-o"]).arg(&path);
        assert!(link.args(&objects).status().unwrap().success());
        let image = Image::open(&path).unwrap();
        Program { path, image }
    }

    /// All functions that were inlined into others, and all calls through pointers, which have numbers beyond any function's.
    pub fn places(&self) -> Places {
        let image = &self.image;
        let debug = image.debug().unwrap();
        let found = debug.inlined("all.so", &[&Pattern::parse("*").unwrap()]);
        let functions = image.functions().iter();
        let mut code: Vec<_> = functions.flat_map(Function::ranges).collect();
        code.sort_by_key(|range| range.start);
        let lines = debug.line_rows(&found.units, &code);
        let all = found.places;
        let rules = image.frame_rules(&code);
        let mut places = Places::default();
        for function in image.functions() {
            let within = |one: &&Inlined| function.ranges().iter().any(|r| r.contains(&one.entry));
            let within: Vec<Inlined> = all.iter().filter(within).cloned().collect();
            let traits = ProcessTraits {
                assume_no_exceptions: true,
                ..ProcessTraits::default()
            };
            if let Ok((unit, pieces)) = accept(image, function, traits) {
                let asked = Asked {
                    inlined: &within,
                    // Behind one by name that does not return, another way's frame begins.
                    calls: Some(&|called| match called {
                        Called::Function(_) => None,
                        Called::Word(_) | Called::Pointer => Some((0, true)),
                    }),
                };
                let found = inlined::find(&unit, &pieces, asked, &rules, &lines, &[]);
                places.2 += found.crossings.brackets().len();
                let number = |n: usize| Some(FunctionId(100_000 + n as u32));
                places
                    .0
                    .insert(function.svma, found.crossings.numbered(number));
                places.1 += found.timed.len();
            }
        }
        places
    }

    /// Segments of copies, with their tables, and the ends of functions that end with a call of something that does not
    /// return: nobody gets there.
    pub fn copies(
        &self,
        config: &ProbeConfig,
        captures: &[Capture],
        places: &Places,
    ) -> (Vec<Linked>, HashSet<u64>) {
        let image = &self.image;
        let module = image.svma_range();
        let module = module.start + BIAS..module.end + BIAS;
        let traits = ProcessTraits {
            assume_no_exceptions: true,
            ..ProcessTraits::default()
        };
        let (mut selected, mut never) = (Vec::new(), HashSet::new());
        let none = Crossings::default();
        for function in image.functions() {
            let Ok((unit, pieces)) = accept(image, function, traits) else {
                continue;
            };
            for (piece, bytes) in unit.pieces.iter().zip(&pieces) {
                let last = piece.insns.last().filter(|_| piece.falls_through);
                let calls = |last: &Insn| {
                    let at = (last.svma - piece.range.start) as usize;
                    let ins = Decoder::new(64, &bytes.bytes[at..], DecoderOptions::NONE).decode();
                    matches!(
                        ins.flow_control(),
                        FlowControl::Call | FlowControl::IndirectCall
                    )
                };
                never.extend(last.filter(|l| calls(l)).map(|_| piece.range.end + BIAS));
            }
            selected.push(Selected {
                load: None,
                lands: function.has_lsda,
                id: FunctionId(selected.len() as u32),
                pieces,
                red_zone_at_entry: unit.red_zone_at_entry,
                bias: BIAS,
                module: module.clone(),
                captures,
                slots: None,
                inlined: places.0.get(&function.svma).unwrap_or(&none),
                unwind: Some(Unwind {
                    image,
                    asked: &[],
                    must: true,
                    walked: true,
                }),
            });
        }
        let slow = SlowConfig {
            contexts_at: BIAS,
            contexts: 64,
            pool_at: BIAS,
            ring_records_log2: 16,
            tid_at_fs: Some(0x2d0),
            follow_forks: false,
        };
        let (mut segments, refused) =
            build::emit(&selected, config, &slow, 1, !config.switchable).unwrap();
        // Whose frame address is in a register that probes change.
        let by_rule = |(_, why): &(FunctionId, Refusal)| matches!(why, Refusal::UnwindTables(_));
        assert!(
            refused.len() < 5 && refused.iter().all(by_rule),
            "{refused:?}"
        );
        let mut at = module.end.next_multiple_of(1 << 20);
        let link = |segment: &mut build::Segment| {
            segment.serve(&slow);
            let linked = segment.link(at).unwrap();
            assert!(linked.refused.is_empty(), "{:?}", linked.refused);
            at += segment.len();
            linked
        };
        (segments.iter_mut().map(link).collect(), never)
    }
}

/// What the first argument points to, and the value that is returned.
pub fn captures() -> Vec<Capture> {
    let capture = |capture, at, method, source| Capture {
        entry: CaptureEntry {
            function: FunctionId(0),
            capture,
            name: String::new(),
            bits: 64,
            signed: false,
            at,
            method,
            elements_max: 1,
        },
        scalar: Scalar::WORD,
        source,
        loads: Vec::new(),
    };
    let pointed_to = Source::Scalar(Chain {
        base: Reg::RDI,
        offsets: vec![8, 0],
    });
    vec![
        capture(
            0,
            CapturePlace::Entry,
            CaptureMethod::CheckedCopy,
            pointed_to,
        ),
        capture(
            1,
            CapturePlace::Return,
            CaptureMethod::Register,
            Source::Return,
        ),
    ]
}
