//! nginx with TLS and HTTP/2, on the stack and for clients on it: what curl gets and leaves there, byte by byte.
use super::super::running::kernel_has_none;
use super::super::tools::{body, nginx};
use super::certificate::certificate;
use super::side::{Mode, Program, Side};
use crate::stack::cable::{STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::command::{Output, run};
use hopscope_tests::{Requirement, Suite, counts};
use nix::sys::signal::Signal;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx, Openssl};
    let needs = &[Netns, Nginx, Curl, Openssl];
    for mode in Mode::BOTH {
        let name = format!("{}_serves_http2_with_nginx", mode.prefix());
        suite.case(name, needs, move || serves(mode)).in_turn();
    }
}

/// An nginx with files, and a place that takes some.
pub(super) struct Site {
    pub(super) command: Command,
    folder: PathBuf,
    /// Of `/body`.
    pub(super) bytes: Vec<u8>,
    certificate: String,
}

const FILES: usize = 40;

impl Site {
    pub(super) fn at(address: &str, more: &str) -> Result<Site> {
        Site::listening(address, "", more)
    }

    /// Also elsewhere.
    pub(super) fn listening(address: &str, elsewhere: &str, more: &str) -> Result<Site> {
        let [certificate, key] = certificate()?;
        let folder = files().join("nginx");
        let bytes = body(&folder, counts().pick(3_000_000, 60_000_000))?;
        for n in 0..FILES {
            std::fs::write(folder.join(format!("f{n}")), part(&bytes, n))?;
        }
        let listen = format!(
            "listen {address}:80; listen {address}:443 ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key}; {elsewhere}\n\
             location /left {{ dav_methods PUT; client_max_body_size 0; }}"
        );
        let command = nginx(&folder, &listen, &format!("user root; {more}"))?;
        Ok(Site {
            command,
            folder,
            bytes,
            certificate,
        })
    }

    pub(super) fn ready(&self) -> PathBuf {
        self.folder.join("pid")
    }

    /// Files by HTTP/1.1 and HTTP/2, one after the other and in parallel, and one in the other direction.
    pub(super) fn is_right(
        &self,
        host: &str,
        curl: impl Fn(&[&str]) -> Result<Output>,
    ) -> Result<()> {
        let last = FILES - 1;
        let got = self.folder.join("got");
        let to = format!("{}/#1", got.display());
        let [plain, secure] =
            ["http", "https"].map(|scheme| format!("{scheme}://{host}/f[0-{last}]"));
        let common = [
            "/usr/bin/curl",
            "-sS",
            "--max-time",
            "60",
            "--create-dirs",
            "--cacert",
            &self.certificate,
            "-w",
            "%{http_version} %{num_connects}\\n",
        ];
        let get = |version: &str, words: &[&str]| -> Result<usize> {
            let _ = std::fs::remove_dir_all(&got);
            let out = curl(&[&common[..], words, &["-o", &to]].concat())?;
            let mut connects = 0;
            ensure!(out.stdout.lines().count() == FILES, "{}", out.stdout);
            for line in out.stdout.lines() {
                let count = line
                    .strip_prefix(version)
                    .map(|rest| rest.trim().parse::<usize>());
                connects += count.ok_or_else(|| anyhow::anyhow!("{line}"))??;
            }
            for n in 0..FILES {
                let came = std::fs::read(got.join(n.to_string()))?;
                ensure!(came == part(&self.bytes, n), "{words:?}: f{n} differs");
            }
            Ok(connects)
        };
        for (version, words) in [
            ("1.1", &["--http1.1", plain.as_str()][..]),
            ("1.1", &["--http1.1", &secure]),
            ("2", &["--http2", &secure]),
        ] {
            let connects = get(version, words)?;
            ensure!(connects == 1, "{words:?}: {connects} connections");
        }
        for (version, words) in [
            ("1.1", &["--http1.1", plain.as_str()][..]),
            ("2", &["--http2", &secure]),
            // A connection for each at once.
            ("2", &["--http2", "--parallel-immediate", &secure]),
        ] {
            get(version, &[&["-Z", "--parallel-max", "10"], words].concat())?;
        }
        let from = self.folder.join("body").display().to_string();
        let left = format!("https://{host}/left");
        curl(&[&common[..], &["--http2", "-T", &from, &left]].concat())?;
        ensure!(
            std::fs::read(self.folder.join("left"))? == self.bytes,
            "what was left differs"
        );
        Ok(())
    }
}

/// Of another length and another place each.
fn part(bytes: &[u8], n: usize) -> &[u8] {
    &bytes[n * 7_919..][..n * n * 97]
}

/// An nginx on the stack, as it would be started on the kernel's.
pub(super) fn started(side: &Side, plain: &Command, folder: &Path) -> Result<Program> {
    let words = plain.get_args().filter_map(|word| word.to_str());
    let program: Vec<&str> = std::iter::once("/usr/sbin/nginx").chain(words).collect();
    let program = side.starts(&program, &folder.join("pid"))?;
    // Its standard error is this file from its start on.
    Ok(program.says_in(folder.join("error.log")))
}

pub(super) fn processes(mode: Mode) -> &'static str {
    match mode {
        Mode::Inline => "master_process off;",
        Mode::Pipeline => "worker_processes 2;",
    }
}

fn serves(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let site = Site::at(STACK, processes(mode))?;
    let server = started(&side, &site.command, &site.folder)?;
    kernel_has_none(443)?;
    site.is_right(STACK, |words| {
        run(Command::new(words[0]).args(&words[1..]))?.expect_code(0)
    })?;
    side.ended(server, Some(Signal::SIGQUIT))?;
    side.ends(400)
}
