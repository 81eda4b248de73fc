//! Large programs that Debian has, each with something to do that always gives the same output.
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Program {
    pub(super) name: &'static str,
    /// A name in the folders of programs, or a path.
    file: &'static str,
    /// `@`: the folder of [`INPUTS`].
    arguments: &'static [&'static str],
    /// A server: `NAME.sh` of [`INPUTS`] makes what it needs (`prepare`), and then loads it until it ends it. Both get a
    /// folder of their own, `@` in its arguments.
    pub(super) load: Option<&'static str>,
    /// Which does not run as root.
    pub(super) user: Option<&'static str>,
}

/// What they are given to work on.
pub(super) const INPUTS: [(&str, &str); 11] = [
    ("mariadb.sh", include_str!("inputs/mariadb.sh")),
    ("nginx.sh", include_str!("inputs/nginx.sh")),
    ("postgres.sh", include_str!("inputs/postgres.sh")),
    ("redis.sh", include_str!("inputs/redis.sh")),
    ("problem.smt2", include_str!("inputs/problem.smt2")),
    ("shapes.cc", include_str!("inputs/shapes.cc")),
    ("sums.rs", include_str!("inputs/sums.rs")),
    ("throws.js", include_str!("inputs/throws.js")),
    ("throws.php", include_str!("inputs/throws.php")),
    ("throws.py", include_str!("inputs/throws.py")),
    ("throws.rb", include_str!("inputs/throws.rb")),
];

const fn program(
    name: &'static str,
    file: &'static str,
    arguments: &'static [&'static str],
) -> Program {
    Program {
        name,
        file,
        arguments,
        load: None,
        user: None,
    }
}

const fn server(
    name: &'static str,
    file: &'static str,
    arguments: &'static [&'static str],
    load: &'static str,
) -> Program {
    Program {
        load: Some(load),
        ..program(name, file, arguments)
    }
}

pub(super) const PROGRAMS: [Program; 27] = [
    program("z3", "z3", &["@/problem.smt2"]),
    program(
        "cc1plus",
        "cc1plus",
        &["-quiet", "-O2", "@/shapes.cc", "-o", "/dev/stdout"],
    ),
    program("clang", "clang++", &["-O2", "-S", "-o", "-", "@/shapes.cc"]),
    program(
        "rustc",
        "rustc",
        &["--emit=mir", "-o", "/dev/stdout", "@/sums.rs"],
    ),
    program("lld", "ld.lld", &["--help"]),
    program("ld", "ld.bfd", &["--help"]),
    program("node", "node", &["@/throws.js"]),
    program("python", "/usr/bin/python3", &["@/throws.py"]),
    program("php", "php", &["@/throws.php"]),
    program("ruby", "ruby", &["@/throws.rb"]),
    program(
        "perl",
        "/usr/bin/perl",
        &[
            "-e",
            "for (1..9e3) { eval { die $_ }; $s .= $@ } print unpack '%32C*', $s",
        ],
    ),
    server(
        "mariadbd",
        "mariadbd",
        &[
            "--no-defaults",
            "--datadir=@/data",
            "--socket=@/socket",
            "--skip-networking",
            "--user=root",
        ],
        "mariadb.sh",
    ),
    program("pdns_server", "pdns_server", &["--help"]),
    Program {
        user: Some("postgres"),
        ..server(
            "postgres",
            "postgres",
            &[
                "-D",
                "@/data",
                "-k",
                "@",
                "-h",
                "",
                "-c",
                "fsync=off",
                "-c",
                "autovacuum=off",
            ],
            "postgres.sh",
        )
    },
    server(
        "redis-server",
        "redis-server",
        &[
            "--port",
            "0",
            "--unixsocket",
            "@/socket",
            "--save",
            "",
            "--enable-debug-command",
            "local",
            // Its lines have the time in them.
            "--logfile",
            "@/log",
        ],
        "redis.sh",
    ),
    program(
        "sqlite3",
        "sqlite3",
        &[
            ":memory:",
            "with recursive c(x) as (select 1 union all select x+1 from c where x<9999) select sum(x), max(hex(x)) from c",
        ],
    ),
    program(
        "gdb",
        "gdb",
        &["-batch", "-nx", "-ex", "info functions main", "/bin/true"],
    ),
    program("cmake", "cmake", &["--help-full"]),
    program("git", "git", &["help", "-a"]),
    program("openssl", "openssl", &["dgst", "-sha3-512", "@/shapes.cc"]),
    program(
        "ffmpeg",
        "ffmpeg",
        &[
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc=d=0.2:s=128x128",
            "-f",
            "framemd5",
            "-",
        ],
    ),
    program("chromium", "/usr/lib/chromium/chromium", &["--version"]),
    program("qemu", "qemu-system-x86_64", &["-device", "help"]),
    program("tshark", "tshark", &["-G", "protocols"]),
    program("haproxy", "haproxy", &["-vv"]),
    server("nginx", "nginx", &["-p", "@", "-c", "@/conf"], "nginx.sh"),
    program("ovs-vswitchd", "ovs-vswitchd", &["--help"]),
];

impl Program {
    /// Its file and its arguments; `None`: it is not installed.
    pub(super) fn command(&self, inputs: &Path) -> Option<(PathBuf, Vec<String>)> {
        let inputs = inputs.display().to_string();
        let arguments = self.arguments.iter().map(|a| a.replace('@', &inputs));
        Some((self.file()?, arguments.collect()))
    }

    fn file(&self) -> Option<PathBuf> {
        match self.name {
            // A part of the compiler.
            "cc1plus" => told("g++", &["-print-prog-name=cc1plus"]),
            // Not rustup's, which only starts it.
            "rustc" => told("rustc", &["--print", "sysroot"]).map(|dir| dir.join("bin/rustc")),
            _ => {
                let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from);
                let path = std::env::var_os("PATH").unwrap_or_default();
                let mut folders = folders.into_iter().chain(std::env::split_paths(&path));
                folders.find_map(|dir| Some(dir.join(self.file)).filter(|file| file.is_file()))
            }
        }
    }
}

fn told(program: &str, arguments: &[&str]) -> Option<PathBuf> {
    let said = crate::program::run(Command::new(program).args(arguments)).ok()?;
    let file = PathBuf::from(said.trim());
    file.is_absolute().then_some(file)
}
