//! Which kinds of hooks this kernel offers, found out by loading and attaching a program that does
//! nothing to one of each. A version or a configuration says less: lockdown, a security module or
//! what the kernel was built on may still refuse.
pub use hopscope_bpf::cgroup::root as cgroup2;
use hopscope_bpf::compiled;
use libbpf_rs::{ObjectBuilder, PrintLevel, ProgramType};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// How a program comes to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    /// Tracepoint with types of its arguments.
    TpBtf,
    /// Tracepoint whose arguments are bare words.
    RawTp,
    /// Entry of a function, by rewriting the kernel's text.
    Fentry,
    /// Return of a function, with its arguments.
    Fexit,
    /// Instruction of a function, by a breakpoint or a jump.
    Kprobe,
    /// Packets of the sockets of a control group.
    CgroupSkb,
    /// Events of the TCP sockets of a control group.
    Sockops,
}

impl HookKind {
    pub const ALL: [HookKind; 7] = [
        HookKind::TpBtf,
        HookKind::RawTp,
        HookKind::Fentry,
        HookKind::Fexit,
        HookKind::Kprobe,
        HookKind::CgroupSkb,
        HookKind::Sockops,
    ];

    /// As in the sections of BPF objects.
    pub const fn name(self) -> &'static str {
        match self {
            HookKind::TpBtf => "tp_btf",
            HookKind::RawTp => "raw_tp",
            HookKind::Fentry => "fentry",
            HookKind::Fexit => "fexit",
            HookKind::Kprobe => "kprobe",
            HookKind::CgroupSkb => "cgroup_skb",
            HookKind::Sockops => "sockops",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum KindError {
    /// Not allowed, or not in this kernel: the error number alone does not tell.
    #[error("the kernel does not load one: {0:#}")]
    Load(#[source] libbpf_rs::Error),
    #[error("the kernel does not attach one: {0:#}")]
    Attach(#[source] libbpf_rs::Error),
    #[error("no cgroup2 is mounted, and none can be")]
    NoCgroup,
    #[error("{path}: {source}", path = path.display())]
    Cgroup {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the programs to try with: {0:#}")]
    Object(#[source] libbpf_rs::Error),
}

static OBJECT: &[u8] = compiled!("kinds");

/// Loads and attaches one program of this kind, and takes it away again.
///
/// # Errors
/// At which step, and what the kernel said.
pub fn try_kind(kind: HookKind) -> Result<(), KindError> {
    // libbpf's own words go to stderr otherwise, and guess at reasons.
    let before = libbpf_rs::set_print(None::<(PrintLevel, fn(PrintLevel, String))>);
    let tried = load_and_attach(kind);
    libbpf_rs::set_print(before);
    tried
}

fn load_and_attach(kind: HookKind) -> Result<(), KindError> {
    let name = format!("try_{}", kind.name());
    let mut builder = ObjectBuilder::default();
    let mut open = builder.open_memory(OBJECT).map_err(KindError::Object)?;
    for mut program in open.progs_mut() {
        let chosen = program.name() == name.as_str();
        program.set_autoload(chosen);
    }
    let loaded = open.load().map_err(KindError::Load)?;
    let Some(program) = loaded.progs_mut().find(|p| p.name() == name.as_str()) else {
        let absent = std::io::Error::other(format!("no program is called {name}"));
        return Err(KindError::Object(absent.into()));
    };
    let attached = match program.prog_type() {
        ProgramType::CgroupSkb | ProgramType::SockOps => {
            let path = cgroup2().ok_or(KindError::NoCgroup)?;
            let group = File::open(&path);
            let group = group.map_err(|source| KindError::Cgroup { path, source })?;
            program.attach_cgroup(group.as_raw_fd())
        }
        _ => program.attach(),
    };
    attached.map(drop).map_err(KindError::Attach)
}
