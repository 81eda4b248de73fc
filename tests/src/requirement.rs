//! What a test may ask of the machine.
pub use hopscope_guest::find_program;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    Root,
    /// Network namespaces can be made.
    Netns,
    /// Programs on tcx ingress (Linux 6.6).
    Tcx,
    Gcc,
    Gxx,
    Clang,
    /// LLVM's C++ library, with its unwinder.
    Libcpp,
    Musl,
    Nginx,
    Wrk,
    Ovs,
    Haproxy,
    Redis,
    Memcached,
    /// The allocator, as a library to be preloaded.
    Jemalloc,
    Liburing,
    /// With a client.
    Sshd,
    Postgres,
    /// The compiler.
    Go,
    Java,
    /// The same with a compiler, and with what makes a runtime of a part of it.
    Jdk,
    /// The kernel joins sockets: `hopscope check splice`.
    Splice,
    Dpdk,
    Python3,
    Perl,
    /// The interpreter's own tests.
    PythonTests,
    /// Readers of what `export` writes, in a Python of their own: `scripts/install-readers`.
    Readers,
    Openssl,
    Gdb,
    /// The kernel writes core files into the working directory.
    CoreFiles,
    Perf,
    Objdump,
    Valgrind,
    Uftrace,
    Tshark,
    Tcpdump,
    Curl,
    Socat,
    Netcat,
    Iperf,
    /// With dig.
    Dnsmasq,
    ApacheBench,
    Ethtool,
    /// nftables.
    Nft,
    /// With chromedriver, which drives it.
    Chromium,
    Tmux,
    Rustc,
    /// A guest with Debian's 6.1 kernel: qemu, what its programs are taken from, and the kernel.
    Vm,
    /// Modules can be built for that kernel.
    VmHeaders,
    /// Hardware performance counters.
    Pmu,
    Fsgsbase,
    Avx512,
    /// 32-bit programs run.
    Ia32,
    /// The kernel lets tracepoints with types, and filters of control groups, be attached.
    SliceHooks,
    /// The kernel says how long each thread waited for a processor.
    Schedstat,
    /// perf's events of uprobes.
    Uprobes,
    /// Control groups of memory (version 1) can be made.
    MemoryGroup,
    /// Control groups of version 2 can be made, and freeze what is in them.
    FreezingGroup,
    /// Control groups of processors (version 1) can be made.
    CpusetGroup,
}

/// Where Debian puts it.
pub const LIBURING: &str = "/usr/lib/x86_64-linux-gnu/liburing.so.2";
pub const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

impl Requirement {
    pub fn name(self) -> &'static str {
        use Requirement::*;
        match self {
            Root => "root",
            Netns => "netns",
            Tcx => "tcx",
            Gcc => "gcc",
            Gxx => "g++",
            Clang => "clang",
            Libcpp => "libc++",
            Musl => "musl",
            Nginx => "nginx",
            Wrk => "wrk",
            Ovs => "ovs",
            Haproxy => "haproxy",
            Redis => "redis",
            Memcached => "memcached",
            Jemalloc => "jemalloc",
            Liburing => "liburing",
            Sshd => "sshd",
            Postgres => "postgres",
            Go => "go",
            Java => "java",
            Jdk => "jdk",
            Splice => "splice",
            Dpdk => "dpdk",
            Python3 => "python3",
            Perl => "perl",
            PythonTests => "python3-tests",
            Readers => "readers",
            Openssl => "openssl",
            Gdb => "gdb",
            CoreFiles => "core-files",
            Perf => "perf",
            Objdump => "objdump",
            Valgrind => "valgrind",
            Uftrace => "uftrace",
            Tshark => "tshark",
            Tcpdump => "tcpdump",
            Curl => "curl",
            Socat => "socat",
            Netcat => "nc",
            Iperf => "iperf3",
            Dnsmasq => "dnsmasq",
            ApacheBench => "ab",
            Ethtool => "ethtool",
            Nft => "nft",
            Chromium => "chromium",
            Tmux => "tmux",
            Rustc => "rustc",
            Vm => "vm",
            VmHeaders => "vm-headers",
            Pmu => "pmu",
            Fsgsbase => "fsgsbase",
            Avx512 => "avx512",
            Ia32 => "ia32",
            SliceHooks => "slice-hooks",
            Schedstat => "schedstat",
            Uprobes => "uprobes",
            MemoryGroup => "memory-group",
            FreezingGroup => "freezing-group",
            CpusetGroup => "cpuset-group",
        }
    }

    /// # Errors
    /// What is missing and how to get it, for the SKIP line.
    pub fn check(self) -> Result<(), String> {
        use Requirement::*;
        match self {
            Root => root(),
            Netns => root().and_then(|()| exists("/proc/self/ns/net", "network namespaces")),
            Tcx => root().and_then(|()| kernel_since(6, 6)),
            Gcc => program("gcc", "gcc"),
            Gxx => program("g++", "g++"),
            Clang => program("clang", "clang"),
            Libcpp => program("clang++", "clang").and_then(|()| {
                let folder = "/usr/lib/x86_64-linux-gnu";
                let shared = |name: &str| Path::new(folder).join(name).exists();
                match shared("libc++.so.1") && shared("libc++.so") {
                    true => Ok(()),
                    false => Err("no libc++ (packages libc++-dev, libc++abi-dev)".to_owned()),
                }
            }),
            Musl => program("musl-gcc", "musl-tools"),
            Nginx => program("nginx", "nginx-light"),
            Wrk => program("wrk", "wrk"),
            Ovs => ovs(),
            Haproxy => program("haproxy", "haproxy"),
            Redis => program("redis-server", "redis-server")
                .and_then(|()| program("redis-benchmark", "redis-tools")),
            Memcached => program("memcached", "memcached"),
            Jemalloc => exists(JEMALLOC, "jemalloc (package libjemalloc2)"),
            Liburing => exists(LIBURING, "liburing (package liburing2)"),
            Sshd => {
                program("sshd", "openssh-server").and_then(|()| program("ssh", "openssh-client"))
            }
            Postgres => postgres()
                .map(drop)
                .ok_or("no postgres (package postgresql-15)".into()),
            Go => go().map(drop).ok_or("no go (package golang-go)".into()),
            Java => program("java", "default-jre-headless"),
            Jdk => jdk()
                .map(drop)
                .ok_or("no jdk (package default-jdk-headless)".into()),
            Splice => splice(),
            Dpdk => dpdk(),
            Python3 => program("python3", "python3"),
            Perl => program("perl", "perl-base"),
            PythonTests => python_tests(),
            Readers => readers(),
            Openssl => program("openssl", "openssl"),
            Gdb => program("gdb", "gdb"),
            CoreFiles => {
                let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern");
                match pattern.unwrap_or_default().trim() {
                    "core" => Ok(()),
                    other => Err(format!("kernel.core_pattern is {other:?}, not \"core\"")),
                }
            }
            Perf => program("perf", "linux-perf"),
            Objdump => program("objdump", "binutils"),
            Valgrind => program("valgrind", "valgrind"),
            Uftrace => program("uftrace", "uftrace"),
            Tshark => program("tshark", "tshark"),
            Tcpdump => program("tcpdump", "tcpdump"),
            Curl => program("curl", "curl"),
            Socat => program("socat", "socat"),
            Netcat => program("nc", "netcat-openbsd"),
            Iperf => program("iperf3", "iperf3"),
            Dnsmasq => {
                program("dnsmasq", "dnsmasq-base").and_then(|()| program("dig", "bind9-dnsutils"))
            }
            ApacheBench => program("ab", "apache2-utils"),
            Ethtool => program("ethtool", "ethtool"),
            Nft => program("nft", "nftables"),
            Chromium => program("chromium", "chromium")
                .and_then(|()| program("chromedriver", "chromium-driver")),
            Tmux => program("tmux", "tmux"),
            Rustc => program("rustc", "rustup (https://rustup.rs)"),
            Vm => vm(),
            VmHeaders => vm_headers(),
            Pmu => exists(
                "/sys/bus/event_source/devices/cpu",
                "hardware performance counters",
            ),
            Fsgsbase => cpu_flag("fsgsbase"),
            Avx512 => cpu_flag("avx512f"),
            Ia32 => ia32(),
            SliceHooks => slice_hooks(),
            Schedstat => schedstat(),
            Uprobes => uprobes(),
            MemoryGroup => root().and_then(|()| {
                exists(
                    "/sys/fs/cgroup/memory/cgroup.procs",
                    "control groups of memory",
                )
            }),
            CpusetGroup => root().and_then(|()| {
                exists(
                    "/sys/fs/cgroup/cpuset/cgroup.procs",
                    "control groups of processors",
                )
            }),
            FreezingGroup => root().and_then(|()| match crate::cgroup2() {
                Some(_) => Ok(()),
                None => Err("no control groups of version 2 are mounted".to_owned()),
            }),
        }
    }
}

fn root() -> Result<(), String> {
    match nix::unistd::geteuid().is_root() {
        true => Ok(()),
        false => Err("not root".into()),
    }
}

fn uprobes() -> Result<(), String> {
    const TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";
    match Path::new(TYPE).exists() {
        true => Ok(()),
        false => Err(format!("no {TYPE}")),
    }
}

/// Where nobody keeps the account the file is there and says 0.
fn schedstat() -> Result<(), String> {
    let said = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    match said.split_whitespace().next() {
        None | Some("0") => Err("no /proc/self/schedstat (CONFIG_SCHED_INFO)".into()),
        Some(_) => Ok(()),
    }
}

fn exists(path: &str, what: &str) -> Result<(), String> {
    match Path::new(path).exists() {
        true => Ok(()),
        false => Err(format!("no {what} ({path} is not there)")),
    }
}

/// Where Debian puts it, or its makers.
pub fn go() -> Option<PathBuf> {
    find_program("go").or_else(|| {
        let own = PathBuf::from("/usr/local/go/bin/go");
        own.is_file().then_some(own)
    })
}

/// Where Debian puts programs of which each version has its own.
pub fn postgres() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    folders
        .filter(|folder| folder.join("postgres").is_file() && folder.join("pgbench").is_file())
        .max()
}

/// Where `java` comes from, if there is more than what runs programs.
pub fn jdk() -> Option<PathBuf> {
    let java = find_program("java")?.canonicalize().ok()?;
    let home = java.parent()?.parent()?.to_owned();
    let all = ["bin/javac", "bin/jlink", "jmods/java.base.jmod"];
    all.iter()
        .all(|file| home.join(file).is_file())
        .then_some(home)
}

/// As `hopscope check splice` finds out by trying.
fn splice() -> Result<(), String> {
    let out = crate::hopscope(&["check", "splice"]).map_err(|error| format!("{error:#}"))?;
    match out.code {
        Some(0) => Ok(()),
        _ => Err("sockets cannot be joined here (hopscope check splice)".into()),
    }
}

fn program(name: &str, package: &str) -> Result<(), String> {
    match find_program(name) {
        Some(_) => Ok(()),
        None => Err(format!("no {name} (package {package})")),
    }
}

/// The daemon, the device its bridges are made of, and what switches checksum offload off on cables.
fn ovs() -> Result<(), String> {
    program("ovs-vswitchd", "openvswitch-switch")?;
    program("ethtool", "ethtool")?;
    exists("/dev/net/tun", "tap devices")
}

/// Libraries with their headers, and the example applications as source.
fn dpdk() -> Result<(), String> {
    program("gcc", "gcc")?;
    program("pkg-config", "pkgconf")?;
    exists(
        "/usr/include/dpdk/rte_ethdev.h",
        "DPDK headers (package libdpdk-dev)",
    )?;
    exists(
        "/usr/share/dpdk/examples/l3fwd",
        "DPDK examples (package dpdk-doc)",
    )
}

fn python_tests() -> Result<(), String> {
    program("python3", "python3")?;
    let found = Command::new("python3")
        .args(["-c", "import test.test_json, test.libregrtest"])
        .output()
        .is_ok_and(|out| out.status.success());
    match found {
        true => Ok(()),
        false => Err("python3 has no tests (Debian: package libpython3.N-testsuite, N as python3 --version says)".into()),
    }
}

fn readers() -> Result<(), String> {
    let python = crate::paths::readers_python();
    let found = Command::new(&python)
        .args([
            "-c",
            "import duckdb, hdrh, pandas, pyarrow, perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        ])
        .output()
        .is_ok_and(|out| out.status.success());
    match found {
        true => Ok(()),
        false => Err(format!(
            "no {} with perfetto, duckdb, pandas, pyarrow and hdrhistogram (scripts/install-readers)",
            python.display()
        )),
    }
}

/// As `hopscope check` finds out by trying.
fn slice_hooks() -> Result<(), String> {
    let out = crate::hopscope(&["check", "--json"]).map_err(|error| format!("{error:#}"))?;
    for name in ["bpf-tracepoint", "bpf-cgroup"] {
        let line = out
            .stdout
            .lines()
            .find(|line| line.contains(&format!("\"name\":\"{name}\"")))
            .ok_or_else(|| format!("hopscope check says nothing of {name}"))?;
        if !line.contains("\"state\":\"ok\"") {
            return Err(format!("{name} is missing here (hopscope check)"));
        }
    }
    Ok(())
}

/// And the compiler that they were made for.
fn vm_headers() -> Result<(), String> {
    program("make", "make")?;
    program("gcc-12", "gcc-12")?;
    let kernel = crate::paths::vm_kernel().map_err(|error| error.to_string())?;
    kernel
        .headers()
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Without KVM: the guest's kernel is what matters, not its speed.
fn vm() -> Result<(), String> {
    program("qemu-system-x86_64", "qemu-system-x86")?;
    program("busybox", "busybox-static")?;
    program("ip", "iproute2")?;
    program("strip", "binutils")?;
    let kernel = crate::paths::vm_kernel();
    kernel.map(drop).map_err(|error| error.to_string())
}

fn cpu_flag(flag: &str) -> Result<(), String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").map_err(|e| e.to_string())?;
    let has = cpuinfo
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|word| word == flag));
    match has {
        true => Ok(()),
        false => Err(format!("the processor has no {flag}")),
    }
}

/// The kernel says so only by running one.
fn ia32() -> Result<(), String> {
    let path = crate::paths::target_dir().join(format!("ia32-{}", std::process::id()));
    let attempt = || -> std::io::Result<()> {
        std::fs::write(&path, elf32_pause())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
        let mut child = Command::new(&path).spawn()?;
        child.kill()?;
        child.wait()?;
        Ok(())
    };
    let tried = attempt();
    let _ = std::fs::remove_file(&path);
    tried.map_err(|error| format!("32-bit programs do not run: {error}"))
}

/// A whole 32-bit ELF executable: one page, two instructions in a loop. Layout: System V ABI,
/// i386 supplement, chapters 4 and 5.
pub fn elf32_pause() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    const HEADERS: u32 = 52 + 32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |values: &[u16]| {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<_>>()
    };
    let word = |values: &[u32]| {
        values
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect::<Vec<_>>()
    };
    file.extend(half(&[2, 3])); // ET_EXEC, EM_386
    file.extend(word(&[1, BASE + HEADERS, 52, 0, 0])); // version, entry, phoff, shoff, flags
    file.extend(half(&[52, 32, 1, 0, 0, 0])); // ehsize, phentsize, phnum, section headers: none
    let code = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7]; // mov eax, pause; int 0x80; jmp back
    let size = HEADERS + code.len() as u32;
    file.extend(word(&[1, 0, BASE, BASE, size, size, 5, 4096])); // PT_LOAD, R-X
    file.extend(code);
    file
}

fn kernel_since(major: u32, minor: u32) -> Result<(), String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|word| word.parse().ok());
    let here = numbers.next().flatten().zip(numbers.next().flatten());
    match here >= Some((major, minor)) {
        true => Ok(()),
        false => Err(format!("Linux {major}.{minor}, not {}", release.trim())),
    }
}
