//! Programs that would hang if their connections were joined: refused on another kernel too, and unharmed
//! beside connections of others that are.
use super::guest::Guest;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::requirement::{find_program, jdk};
use hopscope_tests::{Requirement, Suite, compile, programs, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Jdk, Nginx, Vm};
    // `vm::connections_are_joined` has a web server that is left out, and works.
    suite
        .case(
            "vm::nginx_works_beside_joined_connections",
            &[Vm, Gcc, Nginx],
            nginx,
        )
        .soak();
    // `splice::programs_that_would_hang_are_refused` has it on this machine's kernel.
    suite
        .case(
            "vm::java_works_beside_joined_connections",
            &[Vm, Gcc, Jdk],
            java,
        )
        .soak();
}

const JOINED: u64 = 30;

/// Everything of the guest takes part but for whom it would harm; `script` is run between connections that
/// do, and says what is left to be told.
fn beside(mut guest: Guest, program: &str, script: &str, refused: u64) -> Result<()> {
    for name in ["server", "tester"] {
        let source = format!("splice/{name}.c");
        let built = compile("gcc", &[&source], &["-O2", "-static"])?;
        guest.program(&built, &format!("/bin/{name}"))?;
    }
    guest.step("refused", &format!("hopscope -q splice run -- {program}"));
    guest.step(
        "beside",
        &format!(
            "hopscope -q splice attach --yes --blocking --cgroup /sys/fs/cgroup --ready-file /tmp/attached --json \\
              > /tmp/counters & attach=$!
            while [ ! -e /tmp/attached ]; do kill -0 $attach || exit 3; sleep 0.1; done
            mkfifo /tmp/port
            server 127.0.0.1 /tmp/port & server=$!
            read port < /tmp/port
            tester 127.0.0.1 $port {JOINED} 10 > /tmp/tested || exit 4
            {script}
            tester 127.0.0.1 $port {JOINED} 10 > /tmp/tested || exit 5
            kill $server; wait $server
            kill -INT $attach; wait $attach
            tail -n 1 /tmp/counters"
        ),
    );
    let run = guest.run()?;
    let said = run.step("refused")?.expect_code(125)?.stderr;
    let words = said.lines().count() == 1 && said.contains("FIONREAD");
    ensure!(words, "{said}");
    let counts = run.step("beside")?.expect_code(0)?.stdout;
    let counts: Value = serde_json::from_str(counts.lines().last().context("no counts")?)?;
    let is = |name: &str, value: u64| {
        ensure!(counts[name] == value, "{name}, {value}: {counts}");
        Ok(())
    };
    is("connections", 2 * JOINED)?;
    is("plain_refused", refused)
}

const PAGES: u64 = 3;

/// It reads from its clients, and from itself as the server behind it.
fn nginx() -> Result<()> {
    let mut guest = Guest::new()?;
    let nginx = find_program("nginx").context("no nginx")?;
    guest.program(&nginx, "/bin/nginx")?;
    guest.file(
        "/nginx.conf",
        b"pid /tmp/pid; error_log /tmp/errors; user root; events {}\n\
        http { access_log off;\n\
          server { listen 127.0.0.1:8080; location / { proxy_pass http://127.0.0.1:8081; } }\n\
          server { listen 127.0.0.1:8081; root /tmp; } }\n",
    );
    guest.file("/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n");
    guest.file("/etc/group", b"root:x:0:\n");
    let script = format!(
        "mkdir -p /var/lib/nginx /var/log/nginx
        head -c 700000 /dev/urandom > /tmp/page
        nginx -e /tmp/errors -c /nginx.conf || exit 6
        for n in $(seq {PAGES}); do
          timeout 60 wget -q -O /tmp/got http://127.0.0.1:8080/page && cmp /tmp/got /tmp/page || exit 7
        done
        nginx -e /tmp/errors -c /nginx.conf -s stop"
    );
    beside(guest, "/bin/nginx -v", &script, 2 * PAGES)
}

/// The machine's own, cut down to what the program needs: the guest's memory holds it.
fn java() -> Result<()> {
    let jdk = jdk().context("no jdk")?;
    let classes = scratch().join("classes");
    let source = programs().join("splice/Available.java");
    let mut javac = Command::new(jdk.join("bin/javac"));
    command(javac.arg("-d").arg(&classes).arg(source))?.expect_code(0)?;
    let class = std::fs::read(classes.join("Available.class"))?;
    let runtime = runtime(&jdk)?;
    let mut guest = Guest::new()?;
    guest.memory_mib(768);
    // Its own libraries name each other without a place: only of these two the system's are found.
    each_file(&runtime, &mut |file| {
        let place = format!("/java/{}", file.strip_prefix(&runtime)?.display());
        match file.ends_with("bin/java") || file.ends_with("libjvm.so") {
            true => Ok(guest.program(file, &place)?),
            false => Ok(guest.copy(file, &place)?),
        }
    })?;
    guest.file("/classes/Available.class", &class);
    let script = format!(
        "/java/bin/java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx64m -cp /classes Available {PAGES} 700000 || exit 6"
    );
    beside(guest, "/java/bin/java -version", &script, PAGES)
}

/// Made once for each JDK.
fn runtime(jdk: &Path) -> Result<PathBuf> {
    let release = std::fs::read_to_string(jdk.join("release"))?;
    let version = release
        .lines()
        .find(|line| line.starts_with("JAVA_VERSION="));
    let version = version.and_then(|line| line.split('"').nth(1));
    let version = version.context("the JDK's version")?;
    let runtime = hopscope_tests::paths::built_programs().join(format!("java-{version}"));
    if !runtime.exists() {
        let aside = runtime.with_extension(std::process::id().to_string());
        let mut jlink = Command::new(jdk.join("bin/jlink"));
        jlink.args(["--add-modules", "java.base", "--strip-debug", "--output"]);
        command(jlink.arg(&aside))?.expect_code(0)?;
        std::fs::rename(&aside, &runtime)?;
    }
    Ok(runtime)
}

fn each_file(dir: &Path, with: &mut impl FnMut(&Path) -> Result<()>) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        match path.is_dir() {
            true => each_file(&path, with)?,
            false => with(&path)?,
        }
    }
    Ok(())
}
