//! What cannot run on the stack is refused in one line, before the program starts.
use super::running::{cable, on_the_stack};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c, hopscope, hopscope_bin};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Go, Netns};
    suite.case(
        "stack::run_refuses_what_it_cannot_take",
        &[Netns, Gcc],
        refused,
    );
    suite.case("stack::run_takes_what_loaders_start", &[Netns], loaders);
    suite.case(
        "stack::run_refuses_what_another_version_made",
        &[Netns],
        another_version,
    );
    suite.case(
        "stack::run_says_which_calls_fail",
        &[Netns, Requirement::Python3],
        said_calls,
    );
    suite.case(
        "stack::run_keeps_the_environment",
        &[Netns, Gcc],
        environment,
    );
    suite.case("stack::run_refuses_go_programs", &[Netns, Go], go_program);
    suite.case(
        "stack::run_gives_the_programs_exit_code",
        &[Netns],
        exit_codes,
    );
}

/// 125, and one line that has all of `words`.
pub(super) fn expect(command: &mut Command, words: &[&str]) -> Result<()> {
    let out = run(command)?.expect_code(125)?;
    ensure!(out.stdout.is_empty(), "{}", out.stdout);
    ensure!(out.stderr.lines().count() == 1, "{}", out.stderr);
    for word in words {
        ensure!(out.stderr.contains(word), "{word}: {}", out.stderr);
    }
    Ok(())
}

/// Programs that are static, and load others with what is preloaded: nothing is said of them.
fn loaders() -> Result<()> {
    cable()?;
    let server = TcpListener::bind((KERNEL, 0))?;
    let port = server.local_addr()?.port();
    for loader in [
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/nc.openbsd",
        "valgrind -q --log-file=/dev/null /usr/bin/nc.openbsd",
    ] {
        // The shell executes it, whose hooks look at what that is.
        let script = format!("exec {loader} -z {KERNEL} {port}");
        let out = run(&mut on_the_stack(&[], &["sh", "-c", &script]))?.expect_code(0)?;
        ensure!(out.stderr.is_empty(), "{loader}: {}", out.stderr);
        let (_, from) = server.accept()?;
        ensure!(from.ip().to_string() == STACK, "{loader}: {from}");
    }
    Ok(())
}

/// The library ends a program that another version's `stack run` has started.
fn another_version() -> Result<()> {
    let of = |version: &str| {
        format!(
            r#"{{"version":"{version}","stack":{{"Inline":{{"port":{{"device":"near","index":1,"fd":-1,"max_frame_len":65536,
            "receive_frames":64,"gso":false,"kept":null,"claims":[]}},"engine":{{"mac":[2,0,0,0,0,1],"mtu":1500,"mtu_most":null,"offload":false,
            "lan":false,"cubic":true,"wmem":[212992,212992],"rmem":[212992,212992],"ports":[32768,60999]}}}}}},"reach":{{"addresses":[],"routes":[]}},
            "policy":{{"wildcard_is_stack":false,"rules":[]}},"trace":false}}"#
        )
    };
    let library = hopscope_bin().with_file_name("libhopscope_preload.so");
    let path = files().join("handed");
    let begun = |file: &std::fs::File| -> Result<Command> {
        // It is the program's, too.
        fcntl(file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        let fd = file.as_raw_fd();
        let mut command = Command::new("true");
        command
            .env("LD_PRELOAD", &library)
            .env("HOPSCOPE_STACK", format!("{fd},{fd}"));
        Ok(command)
    };
    std::fs::write(&path, of(env!("CARGO_PKG_VERSION")))?;
    let file = std::fs::File::open(&path)?;
    run(&mut begun(&file)?)?.expect_code(0)?;
    std::fs::write(&path, of("0.0.9"))?;
    expect(&mut begun(&file)?, &["made by version 0.0.9"])
}

fn refused() -> Result<()> {
    cable()?;
    let folder = files();
    let source = folder.join("nothing.c");
    std::fs::write(&source, "int main(void) { return 0; }\n")?;
    let built = |name: &str, more: &[&str]| -> Result<String> {
        let program = folder.join(name);
        run(Command::new("gcc")
            .args(more)
            .arg("-o")
            .arg(&program)
            .arg(&source))?
        .expect_code(0)?;
        Ok(program.display().to_string())
    };
    let fixed = built("fixed", &["-static"])?;
    expect(&mut on_the_stack(&[], &[&fixed]), &["statically"])?;
    let script = folder.join("script");
    std::fs::write(&script, format!("#!{fixed}\n"))?;
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755))?;
    expect(
        &mut on_the_stack(&[], &[&script.display().to_string()]),
        &["statically"],
    )?;
    let changes = built("changes", &[])?;
    std::os::unix::fs::chown(&changes, Some(65_534), None)?;
    std::fs::set_permissions(&changes, PermissionsExt::from_mode(0o4755))?;
    expect(&mut on_the_stack(&[], &[&changes]), &["set-uid"])?;
    expect(
        &mut on_the_stack(&[], &["no-such-program"]),
        &["no such program"],
    )?;
    expect(&mut on_the_stack(&["--spin"], &["true"]), &["--spin"])?;
    let own = |arguments: &[&str]| {
        let mut command = Command::new(hopscope_tests::hopscope_bin());
        command
            .args(["stack", "run"])
            .args(arguments)
            .args(["--", "true"]);
        command
    };
    expect(
        &mut own(&["--if=nowhere", "--addr=10.0.0.2/24"]),
        &["nowhere"],
    )?;
    expect(
        &mut own(&["--if=near", "--addr=10.0.0.1/24"]),
        &["10.0.0.1", "kernel's own"],
    )?;
    expect(
        &mut own(&["--if=xdp:near", "--addr=10.0.0.2/24"]),
        &["xdp:near", "packet:DEVICE"],
    )?;
    Ok(())
}

/// The compiler is one.
fn go_program() -> Result<()> {
    cable()?;
    let go = hopscope_tests::requirement::go().context("no go")?;
    expect(
        &mut on_the_stack(&[], &[&go.display().to_string()]),
        &["Go program"],
    )
}

/// Never the kernel's without a word: it fails, and is said.
fn said_calls() -> Result<()> {
    cable()?;
    let line = "import socket
import struct
udp, bound = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(2)]
bound.bind(('10.0.0.2', 9))
tcp = socket.socket()
group = socket.inet_aton('224.0.0.251') + socket.inet_aton('10.0.0.2')
segment = [([b'x'], [(17, 103, struct.pack('=H', 9))], 0, ('10.0.0.1', 9))]
tried = [lambda: tcp.connect(('10.0.0.2', 9)), lambda: udp.sendto(b'x', ('10.0.0.2', 9)), lambda: udp.setsockopt(0, 11, 1),
         lambda: udp.setsockopt(17, 103, 9), lambda: bound.setsockopt(0, socket.IP_ADD_MEMBERSHIP, group),
         lambda: bound.sendto(b'x', socket.MSG_MORE, ('10.0.0.1', 9)), lambda: bound.sendmsg(*segment[0]),
         lambda: bound.sendto(b'x', ('127.0.0.1', 9)), lambda: bound.sendto(b'x', ('10.0.0.255', 9)),
         lambda: udp.sendto(b'x', ('127.0.0.1', 9)), lambda: udp.sendto(b'x', ('10.0.0.255', 9)),
         lambda: udp.setsockopt(0, socket.IP_ADD_MEMBERSHIP, group[:4] + bytes(4))]
for call in tried:
    try:
        call()
        print(0)
    except OSError as error:
        print(error.errno)
";
    let out = run(&mut on_the_stack(&[], &["/usr/bin/python3", "-c", line]))?.expect_code(0)?;
    let given: Vec<&str> = out.stdout.lines().collect();
    // The last three are the kernel's: sent, as it says of a broadcast, no device for a group.
    let expected = [
        "111", "0", "92", "92", "92", "95", "22", "101", "13", "0", "13", "19",
    ];
    ensure!(given == expected, "{}", out.stdout);
    for word in ["option 11 of level 0", "MSG_MORE"] {
        ensure!(out.stderr.contains(word), "{word}: {}", out.stderr);
    }
    Ok(())
}

fn exit_codes() -> Result<()> {
    cable()?;
    for (line, code) in [("exit 0", 0), ("exit 3", 3)] {
        let out = run(&mut on_the_stack(&[], &["sh", "-c", line]))?;
        ensure!(
            out.code == Some(code),
            "{line}: {:?}: {}",
            out.code,
            out.stderr
        );
        ensure!(out.stderr.is_empty(), "{}", out.stderr);
    }
    // Without the port's privilege.
    let out = hopscope(&["stack", "run", "--addr=10.0.0.2/24", "--", "true"])?;
    ensure!(out.code == Some(2), "{:?}", out.code);
    Ok(())
}

/// Entry by entry and in order, whatever they are, with two more.
fn environment() -> Result<()> {
    cable()?;
    let odd = compile_c(&["launched/odd_environment.c"], &["-O1"])?;
    let look = ["/bin/cat", "/proc/self/environ"];
    let plain = run(Command::new(&odd).args(look))?.expect_code(0)?;
    let on_the_stack = on_the_stack(&[], &look);
    let mut on_it = Command::new(&odd);
    on_it
        .arg(on_the_stack.get_program())
        .args(on_the_stack.get_args());
    let on_it = run(&mut on_it)?.expect_code(0)?;
    let is_ours = |entry: &&str| {
        let name = entry.split('=').next().unwrap_or_default();
        name == "LD_PRELOAD" || name == "HOPSCOPE_STACK"
    };
    let (ours, theirs): (Vec<&str>, Vec<&str>) = on_it.stdout.split('\0').partition(is_ours);
    let expected: Vec<&str> = plain.stdout.split('\0').collect();
    ensure!(
        expected.len() > 10 && theirs == expected && ours.len() == 2,
        "{expected:?} became {theirs:?} and {ours:?}"
    );
    Ok(())
}
