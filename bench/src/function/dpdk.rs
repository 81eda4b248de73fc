//! NAT and IPsec from DPDK's example programs, built from the sources that the system's packages
//! bring. Packets are replayed from memory by one port and discarded by another: no device, no system
//! call, no second process is in what is measured.
use super::Processors;
use super::Running;
use super::counter::Counter;
use super::ready_process::start as start_program;
use crate::Settings;
use crate::error::{Error, Result};
use crate::program::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const EXAMPLES: &str = "/usr/share/dpdk/examples";
/// No huge pages, which others may need, and nothing left behind in the file system.
const ENVIRONMENT: &str = "--no-shconf --no-pci --no-huge -m 512";
/// All of them are translated, or encrypted: 10.0.0.0/8 to 198.18.0.0/24.
const TRAFFIC: [&str; 12] = [
    "--count",
    "256",
    "--flows",
    "64",
    "--src",
    "10.0.0.1",
    "--dst",
    "198.18.0.1",
    "--dport",
    "5000",
    "--rate",
    "max",
];

/// `ip_pipeline` with one translating rule.
pub(crate) fn nat(
    settings: &Settings,
    processors: &Processors,
    _: Option<&PathBuf>,
) -> Result<Running> {
    let dir = directory(settings, "nat")?;
    // The main thread takes a processor for itself, polling for connections to its command line.
    let (main, worker) = (processors.others, processors.worker);
    let script = include_str!("nat.cli").replace("WORKER", &worker.to_string());
    write(&dir.join("nat.cli"), &script)?;
    let mut command = program(settings, "ip_pipeline", &dir)?;
    command.args(["-l", &format!("{main},{worker}")]);
    command.args(words(ENVIRONMENT));
    command.args(words("--vdev=net_pcap0,rx_pcap=in.pcap,infinite_rx=1"));
    command.args(words("--vdev=net_null1,no-rx=1"));
    command.args(["--file-prefix", &prefix("nat")]);
    command.args(words("-- -h 127.0.0.1 -p 0 -s nat.cli"));
    started("nat", command, &dir, 1, &format!("rte-worker-{worker}"))
}

/// `ipsec-secgw`: AES-128-CBC and SHA-1 by the multi-buffer library, tunnel mode.
pub(crate) fn ipsec(
    settings: &Settings,
    processors: &Processors,
    _: Option<&PathBuf>,
) -> Result<Running> {
    let dir = directory(settings, "ipsec")?;
    let worker = processors.worker;
    write(&dir.join("ep.cfg"), include_str!("ipsec.cfg"))?;
    let mut command = program(settings, "ipsec-secgw", &dir)?;
    command.args(["-l", &worker.to_string()]);
    command.args(words(ENVIRONMENT));
    command.args(words("--vdev=net_null0,no-rx=1"));
    command.args(words("--vdev=net_pcap1,rx_pcap=in.pcap,infinite_rx=1"));
    command.args(words("--vdev=crypto_aesni_mb0"));
    command.args(["--file-prefix", &prefix("ipsec")]);
    command.args(words("-- -p 3 -P -u 0x1 -l -f ep.cfg"));
    command.arg(format!("--config=(0,0,{worker}),(1,0,{worker})"));
    started("ipsec", command, &dir, 0, "ipsec-secgw")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

/// Of the run-time directory: two benches may run at once.
fn prefix(name: &str) -> String {
    format!("hopscope-{name}-{}", std::process::id())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file("write", path))
}

fn directory(settings: &Settings, name: &str) -> Result<PathBuf> {
    let dir = settings.build_dir.join("network-functions").join(name);
    fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
    let input = dir.join("in.pcap");
    let mut generate = Command::new(&settings.hopscope);
    generate.args(["load", "packets", "--tx"]);
    generate.arg(format!("pcap:{}", input.display()));
    run(generate
        .args(TRAFFIC)
        .args(["--dst-mac", "02:00:00:00:00:02"]))?;
    Ok(dir)
}

/// The command of an example, built when it is not yet there, to be run in `dir`.
fn program(settings: &Settings, example: &str, dir: &Path) -> Result<Command> {
    let program = settings.build_dir.join("network-functions").join(example);
    if !program.exists() {
        let header = dir.join("no_offload.h");
        write(&header, include_str!("no_offload.h"))?;
        let flags = |what: &str| run(Command::new("pkg-config").args([what, "libdpdk"]));
        let (compile, link) = (flags("--cflags")?, flags("--libs")?);
        let source = Path::new(EXAMPLES).join(example);
        let mut gcc = Command::new("gcc");
        gcc.args(words("-O3 -g -march=native -DALLOW_EXPERIMENTAL_API"));
        // Otherwise next to nothing of an example is a function that can be measured.
        gcc.arg("-fno-inline-functions");
        gcc.arg(format!("-I{}", source.display()));
        gcc.arg(format!("-I{EXAMPLES}/common"))
            .args(words(&compile));
        gcc.arg("-include").arg(header);
        let listed = fs::read_dir(&source).map_err(Error::file(
            "list the sources of (package dpdk-doc)",
            &source,
        ))?;
        let mut sources: Vec<PathBuf> = listed.flatten().map(|e| e.path()).collect();
        sources.retain(|path| path.extension().is_some_and(|e| e == "c"));
        sources.sort();
        gcc.args(sources).arg("-o").arg(&program);
        run(gcc.args(words(&link)).args(["-lm", "-lpthread"]))?;
    }
    let mut command = Command::new(program);
    command.current_dir(dir);
    Ok(command)
}

/// Running and with packets going through.
fn started(
    name: &'static str,
    mut command: Command,
    dir: &Path,
    port: u32,
    worker: &str,
) -> Result<Running> {
    let run_time = PathBuf::from("/var/run/dpdk").join(prefix(name));
    let log = dir.join("stdout");
    let stdout = fs::File::create(&log).map_err(Error::file("create", &log))?;
    command.stdout(Stdio::from(stdout));
    let mut counter = None;
    let child = start_program(&mut command, &dir.join("stderr"), || {
        counter = Counter::telemetry(&run_time, port).ok();
        let counts = counter.as_mut().map(Counter::packets);
        matches!(counts, Some(Ok(packets)) if packets > 0)
    })?;
    let Some(counter) = counter else {
        unreachable!("it is ready when there is one")
    };
    Ok(Running::new(name, child, worker, counter).with_directory(run_time))
}
