//! A running l3fwd with two ports that write to files. Port 0 reads what the test writes.
use super::packets::{self, Frame};
use super::rules::{self, Lookup};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Target, compile, programs};
use nix::poll::poll;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Only a forwarder that hangs is waited for so long.
const WATCHDOG: Duration = Duration::from_secs(60);
const LOOK_AGAIN_MS: u8 = 20;
const EXAMPLES: &str = "/usr/share/dpdk/examples";

pub(super) struct Forwarder {
    target: Target,
    input: File,
    dir: PathBuf,
}

impl Forwarder {
    /// In its main loop, with no packet yet.
    pub(super) fn start(dir: &Path, lookup: Lookup) -> Result<Forwarder> {
        fs::create_dir_all(dir)?;
        let pipe = dir.join("in.pcap");
        mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // Read and write: this does not wait for the other side, which wants the header at once.
        let mut both = File::options().read(true).write(true).open(&pipe)?;
        both.write_all(&packets::header())?;
        fs::write(dir.join("none.pcap"), packets::header())?;
        rules::write(dir, lookup)?;
        let mut command = Command::new(build()?);
        command.current_dir(dir).args(arguments(lookup)?);
        command
            .stdin(Stdio::null())
            .stdout(File::create(dir.join("stdout"))?)
            .stderr(Stdio::piped());
        let mut target = Target::spawn_now(&mut command)?;
        let log = target.child().stderr.take().context("its log")?;
        await_main_loop(&follow(log))?;
        let input = File::options().write(true).open(&pipe)?;
        Ok(Forwarder {
            target,
            input,
            dir: dir.into(),
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    pub(super) fn send(&self, input: &[Frame], which: Range<u64>) -> Result<()> {
        let frames = &input[which.start as usize..which.end as usize];
        (&self.input).write_all(&packets::encode(frames))?;
        Ok(())
    }

    /// Until so many bytes have come out.
    pub(super) fn wait_for(&self, bytes: u64) -> Result<()> {
        let started = Instant::now();
        loop {
            let mut out = 0;
            for port in 0..2 {
                out += fs::metadata(self.dir.join(output(port)))?.len();
            }
            if out >= bytes {
                return Ok(());
            }
            ensure!(
                started.elapsed() < WATCHDOG,
                "only {out} of {bytes} bytes came out"
            );
            poll(&mut [], LOOK_AGAIN_MS)?;
        }
    }

    /// Ends the input, then, when all that was sent has come out, the forwarder.
    pub(super) fn finish(self) -> Result<[Vec<Frame>; 2]> {
        (&self.input).write_all(&packets::encode(&packets::last()))?;
        drop(self.input);
        let started = Instant::now();
        for port in 0..2 {
            while !packets::ends_with_last(&self.dir.join(output(port)))? {
                ensure!(
                    started.elapsed() < WATCHDOG,
                    "the last packet for port {port} did not come out"
                );
                poll(&mut [], LOOK_AGAIN_MS)?;
            }
        }
        self.target.signal(Signal::SIGINT)?;
        let status = self.target.wait()?;
        ensure!(status.success(), "l3fwd: {status}");
        let said = fs::read_to_string(self.dir.join("stdout"))?;
        ensure!(said.ends_with("Bye...\n"), "it did not end orderly: {said}");
        let frames = |port| packets::decode(&fs::read(self.dir.join(output(port)))?);
        Ok([frames(0)?, frames(1)?])
    }
}

fn output(port: usize) -> String {
    format!("out{port}.pcap")
}

/// One thread, no huge pages, nothing left behind in the file system.
fn arguments(lookup: Lookup) -> Result<Vec<String>> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let mut processors = 0..CpuSet::count();
    let processor = processors
        .find(|&cpu| allowed.is_set(cpu) == Ok(true))
        .context("no processor")?;
    let words = format!(
        "-l {processor} --no-shconf --no-telemetry --no-pci --no-huge -m 512 \
         --vdev=net_pcap0,rx_pcap=in.pcap,tx_pcap=out0.pcap \
         --vdev=net_pcap1,rx_pcap=none.pcap,tx_pcap=out1.pcap \
         -- -p 0x3 -P --lookup={} --config=(0,0,{processor}),(1,0,{processor}) \
         --rule_ipv4=rules4 --rule_ipv6=rules6 --parse-ptype",
        match lookup {
            Lookup::Acl => "acl",
            Lookup::Lpm => "lpm",
        }
    );
    Ok(words.split_whitespace().map(str::to_owned).collect())
}

/// From the source as packaged.
fn build() -> Result<PathBuf> {
    let flags = |what| -> Result<Vec<String>> {
        let out = run(Command::new("pkg-config").args([what, "libdpdk"]))?.expect_code(0)?;
        Ok(out.stdout.split_whitespace().map(str::to_owned).collect())
    };
    let example = format!("{EXAMPLES}/l3fwd");
    let mut sources = Vec::new();
    for entry in fs::read_dir(&example)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        // These are included by others.
        if name.ends_with(".c") && !name.ends_with("_route_parse.c") {
            sources.push(format!("{example}/{name}"));
        }
    }
    sources.sort();
    let mut all = vec!["-O3".into(), "-g".into(), "-DALLOW_EXPERIMENTAL_API".into()];
    all.push(format!("-I{example}"));
    all.push(format!("-I{EXAMPLES}/common"));
    all.extend(flags("--cflags")?);
    all.push("-include".into());
    let header = programs().join("dpdk/no_checksum_offload.h");
    all.push(header.to_str().context("path")?.to_owned());
    all.extend(flags("--libs")?);
    all.extend(["-lm".into(), "-lpthread".into()]);
    let (sources, all): (Vec<&str>, Vec<&str>) = (
        sources.iter().map(String::as_str).collect(),
        all.iter().map(String::as_str).collect(),
    );
    compile("gcc", &sources, &all)
}

/// Lines as they come, read to the end so that nobody waits for a full pipe.
fn follow(log: ChildStderr) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        for line in BufReader::new(log).lines().map_while(Result::ok) {
            // Nobody listens any more once it runs.
            let _ = send.send(line);
        }
    });
    receive
}

fn await_main_loop(log: &Receiver<String>) -> Result<()> {
    let mut said = String::new();
    loop {
        match log.recv_timeout(WATCHDOG) {
            Ok(line) if line.contains("entering main loop") => return Ok(()),
            Ok(line) => said = said + &line + "\n",
            Err(RecvTimeoutError::Timeout) => bail!("l3fwd hangs: {said}"),
            Err(RecvTimeoutError::Disconnected) => bail!("l3fwd ended: {said}"),
        }
    }
}
