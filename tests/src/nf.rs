//! Real programs with every function of theirs measured: what they put out is the same, and every
//! entry has its end.
use crate::recording::{self, Report};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts, hopscope_bin, scratch};
use nix::sys::signal::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Nginx, Openssl, Python3, Root, Wrk};
    suite
        .case(
            "nf::nginx_serves_the_same_with_every_function_measured",
            &[Root, Fsgsbase, Nginx, Wrk],
            nginx,
        )
        .alone();
    suite.case(
        "nf::openssl_encrypts_the_same_with_every_function_measured",
        &[Root, Fsgsbase, Openssl],
        openssl,
    );
    suite.case(
        "nf::python_computes_the_same_with_every_function_measured",
        &[Root, Fsgsbase, Python3],
        python,
    );
}

/// Entries and ends agree, and at most one end in a thousand is declared lost.
fn expect_sound(file: &Path, at_least: u64) -> Result<()> {
    let report = Report::read(file)?;
    report.expect_balanced()?;
    let balance = |field: &str| {
        report.summary["balance"][field]
            .as_u64()
            .context("a balance")
    };
    let (entries, declared) = (balance("entries")?, balance("declared_lost")?);
    ensure!(entries >= at_least, "only {entries} entries");
    ensure!(
        declared * 1000 <= entries,
        "{declared} of {entries} ends are declared lost"
    );
    Ok(())
}

/// Status line and body.
fn get(port: u16, path: &str, gzip: bool) -> Result<(String, Vec<u8>)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let accept = if gzip {
        "Accept-Encoding: gzip\r\n"
    } else {
        ""
    };
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\n{accept}Connection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .context("no end of headers")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.lines().next().unwrap_or_default().to_owned();
    Ok((status, answer[end + 4..].to_vec()))
}

fn answers(port: u16) -> Result<Vec<(String, Vec<u8>)>> {
    [
        ("/a.txt", false),
        ("/a.txt", true),
        ("/missing", false),
        ("/", false),
    ]
    .into_iter()
    .map(|(path, gzip)| get(port, path, gzip))
    .collect()
}

fn children(pid: i32) -> Result<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Master and two workers, gzip, 404, keep-alive load, a reload while measured, a graceful end.
fn nginx() -> Result<()> {
    let dir = scratch();
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    fs::create_dir_all(dir.join("www"))?;
    fs::write(
        dir.join("www/a.txt"),
        "measured or not, the same\n".repeat(400),
    )?;
    let d = dir.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|n| format!("{n}_temp_path {d}/{n};\n"))
        .collect();
    fs::write(
        dir.join("nginx.conf"),
        format!(
            "user root; worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error.log warn;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; gzip on; gzip_min_length 10; gzip_types text/plain; {temporary}\
             server {{ listen 127.0.0.1:{port}; root {d}/www; }} }}\n"
        ),
    )?;
    let mut command = Command::new("nginx");
    command.args(["-p", &d.to_string(), "-c", "nginx.conf"]);
    let nginx = Target::spawn_with_ready_file(&mut command, &dir.join("pid"))?;
    let before = answers(port)?;
    ensure!(before[2].0.contains("404"), "{:?}", before[2].0);

    let trace = dir.join("nginx.hop");
    let ready = dir.join("ready");
    let mut record = recording::command(nginx.pid(), &["nginx!*"], &trace);
    for worker in children(nginx.pid())? {
        record.args(["-p", &worker]);
    }
    record.arg("--ready-file").arg(&ready);
    let recorder = Target::spawn_with_ready_file(&mut record, &ready)?;
    ensure!(answers(port)? == before, "different answers while measured");
    let seconds = counts().pick("1s", "10s");
    let url = format!("http://127.0.0.1:{port}/a.txt");
    let load =
        run(Command::new("wrk").args(["-t1", "-c4", "-d", seconds, &url]))?.expect_code(0)?;
    ensure!(!load.stdout.contains("Non-2xx"), "{}", load.stdout);
    nginx.signal(Signal::SIGHUP)?;
    ensure!(answers(port)? == before, "different answers after a reload");
    recorder.signal(Signal::SIGINT)?;
    ensure!(recorder.output()?.status.success(), "the recorder failed");
    expect_sound(&trace, 10_000)?;

    ensure!(answers(port)? == before, "different answers afterwards");
    nginx.signal(Signal::SIGQUIT)?;
    ensure!(nginx.wait()?.success(), "nginx did not end gracefully");
    let errors = fs::read_to_string(dir.join("error.log"))?;
    let bad = errors.lines().find(|l| {
        ["[alert]", "[emerg]", "[crit]"]
            .iter()
            .any(|w| l.contains(w))
    });
    ensure!(bad.is_none(), "{errors}");
    Ok(())
}

/// Output of a command, bare and with all functions of all its modules measured from the start.
fn same_when_measured(command: &[&str], trace: &Path) -> Result<()> {
    let bare = Command::new(command[0]).args(&command[1..]).output()?;
    ensure!(
        bare.status.success(),
        "{}",
        String::from_utf8_lossy(&bare.stderr)
    );
    let result = trace.with_extension("out");
    let mut record = Command::new(hopscope_bin());
    record
        .args([
            "record",
            "--json",
            "--no-calibration",
            "--max-overhead",
            "1e9",
            "--buffer",
            "64M",
        ])
        .args(["-f", "*", "-o"])
        .arg(trace)
        .arg("--")
        .args(command);
    let measured = record.output()?;
    let said = String::from_utf8_lossy(&measured.stderr);
    ensure!(measured.status.success(), "{}: {said}", measured.status);
    // The command's output comes first, the recorder's summary last.
    let out = &measured.stdout;
    ensure!(
        out.starts_with(&bare.stdout),
        "a different output when measured: {}",
        result.display()
    );
    recording::summary(&String::from_utf8_lossy(&out[bare.stdout.len()..]))?;
    Ok(())
}

fn openssl() -> Result<()> {
    let dir = scratch();
    let input = dir.join("input");
    fs::write(
        &input,
        "a line to be encrypted\n".repeat(counts().pick(20_000, 400_000)),
    )?;
    let trace = dir.join("openssl.hop");
    let input = input.to_str().context("path")?;
    let words = "openssl enc -aes-256-cbc -a -pbkdf2 -pass pass:x -S 0011223344556677 -in";
    let command: Vec<&str> = words.split(' ').chain([input]).collect();
    same_when_measured(&command, &trace)?;
    expect_sound(&trace, 10_000)
}

const SCRIPT: &str = "
import hashlib, json, re, zlib, itertools, collections
data = {str(i): [j * i for j in range(i % 17)] for i in range(2000)}
text = json.dumps(json.loads(json.dumps(data)), sort_keys=True)
words = collections.Counter(re.findall('[0-9]+', text))
try:
    raise ValueError(sum(words.values()))
except ValueError as e:
    total = e.args[0]
packed = zlib.compress(text.encode())
perms = sum(p[0] * p[-1] for p in itertools.permutations(range(7)))
print(hashlib.sha256(packed).hexdigest(), total, perms, zlib.decompress(packed).decode() == text)
";

fn python() -> Result<()> {
    let dir = scratch();
    let trace = dir.join("python.hop");
    // `python3` may be a script that finds the interpreter: measure the interpreter itself.
    let itself = ["-c", "import sys; print(sys.executable)"];
    let python = run(Command::new("python3").args(itself))?
        .expect_code(0)?
        .stdout;
    same_when_measured(&[python.trim(), "-I", "-c", SCRIPT], &trace)?;
    expect_sound(&trace, 100_000)
}
