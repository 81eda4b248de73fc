//! The same random socket calls on the kernel's stack and on ours: each gives the same, epoll's events included.
use super::running::{cable, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, KERNEL_V6, STACK, STACK_V6, ip};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c, counts};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

/// Milliseconds that the far end gets after each call. What differs is tried again with more: a machine is busy, and an acknowledgement may
/// be delayed by 40 ms.
const PATIENCE: [&str; 3] = ["3", "60", "200"];

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite
        .case(
            "stack::run_gives_programs_what_the_kernel_gives",
            needs,
            the_same,
        )
        .watchdog(3_600);
    type Case = fn() -> Result<()>;
    for (name, case) in [
        ("children", the_same_of_workers as Case),
        ("threads", the_same_of_threads),
        ("those_that_connect", the_same_of_opening),
    ] {
        let name = format!("stack::run_gives_{name}_what_the_kernel_gives");
        suite.case(name, needs, case).watchdog(3_600);
    }
    suite
        .case(
            "stack::run_gives_datagrams_what_the_kernel_gives",
            needs,
            the_same_of_datagrams,
        )
        .watchdog(3_600);
    let needs = &[Requirement::Netns, Requirement::Gcc];
    suite.case("stack::run_waits_as_the_kernel_does", needs, waits);
    suite.case("stack::run_calls_as_the_kernel_does", needs, calls);
    suite.case(
        "stack::run_connects_without_waiting",
        &[Requirement::Netns, Requirement::Python3],
        connects_without_waiting,
    );
    suite.case(
        "stack::run_waits_for_datagrams_as_the_kernel_does",
        needs,
        waits_for_datagrams,
    );
    suite.case("stack::run_tells_edges_as_the_kernel_does", needs, edges);
    suite.case(
        "stack::run_takes_options_as_the_kernel_does",
        &[Requirement::Netns, Requirement::Python3],
        options,
    );
}

/// Time-outs, interruptions, cancelled threads, resets, ends of descriptors: a line each.
fn waits() -> Result<()> {
    cable()?;
    let program = compile_c(&["stack/run/waiting.c"], &["-O1", "-pthread"])?;
    let program = program.to_str().context("path")?;
    the_same_lines(
        &[program, KERNEL],
        &["--kernel=10.0.0.2/32"],
        &[program, STACK],
    )
}

/// What few programs call, and what options tell.
fn calls() -> Result<()> {
    cable()?;
    let program = compile_c(&["stack/run/calls.c"], &CALLS_FLAGS)?;
    let program = program.to_str().context("path")?;
    // "`splice` with a connection returns EINVAL"
    let splices = [
        ("splice out: 7", "splice out: EINVAL"),
        ("splice in: 2", "splice in: EINVAL"),
    ];
    the_same_but(
        &splices,
        &[program, KERNEL, "low-water"],
        &["--kernel=10.0.0.2/32"],
        &[program, STACK, "low-water"],
    )
}

/// Of `calls.c`.
pub(super) const CALLS_FLAGS: [&str; 3] = ["-O2", "-D_FORTIFY_SOURCE=2", "-pthread"];

/// Not writable before the connection is there; its errors; its first edge.
fn connects_without_waiting() -> Result<()> {
    cable()?;
    the_same_connects(&on_the_stack)
}

pub(super) fn the_same_connects(start: Start<'_>) -> Result<()> {
    let listener = TcpListener::bind((KERNEL, 0))?;
    let port = listener.local_addr()?.port().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut four = [0; 4];
            let _ = stream.read_exact(&mut four);
            let _ = stream.write_all(&four);
        }
    });
    let program = python("nonblocking.py", &[KERNEL, "10.0.0.77", &port]);
    let program = words(&program);
    the_same_of_all(11, &program, &mut start(&[], &program))
}

/// So many lines, the first time.
pub(super) fn the_same_of_all(
    count: usize,
    on_kernel: &[&str],
    on_stack: &mut Command,
) -> Result<()> {
    let kernel = run(Command::new(on_kernel[0]).args(&on_kernel[1..]))?.expect_code(0)?;
    let stack = run(on_stack)?.expect_code(0)?;
    ensure!(kernel.stdout.lines().count() == count, "{}", kernel.stdout);
    ensure!(
        kernel.stdout == stack.stdout,
        "kernel:\n{}stack:\n{}",
        kernel.stdout,
        stack.stdout
    );
    Ok(())
}

/// What waits for datagrams, many at once, control messages, lengths.
fn waits_for_datagrams() -> Result<()> {
    cable()?;
    // As the cable's, and as many errors as there are.
    ip("link set lo mtu 1500")?;
    std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")?;
    let program = compile_c(&["stack/run/datagrams.c"], &["-O1", "-pthread"])?;
    let program = program.to_str().context("path")?;
    the_same_lines(&[program, KERNEL, KERNEL], &[], &[program, STACK, KERNEL])
}

/// Of a socket at every address that the kernel has, too: what comes there is told once by EPOLLET, and sets are ready in poll.
fn edges() -> Result<()> {
    cable()?;
    the_same_edges(&on_the_stack, &[], 134)
}

pub(super) fn the_same_edges(start: Start<'_>, of_pairs: &[&str], count: usize) -> Result<()> {
    let program = compile_c(&["stack/run/edges.c"], &["-O1", "-pthread"])?;
    let program = program.to_str().context("path")?;
    let on_kernel = [&[program, KERNEL, KERNEL], of_pairs].concat();
    let on_stack = [&[program, STACK, KERNEL], of_pairs].concat();
    // The connecting ends are the kernel's.
    let mut on_stack = start(&["--kernel=10.0.0.2/32"], &on_stack);
    the_same_of_all(count, &on_kernel, &mut on_stack)
}

/// What setsockopt takes, getsockopt gives and the wire shows of all options that the stack has.
fn options() -> Result<()> {
    cable()?;
    the_same_options(&on_the_stack)
}

pub(super) fn the_same_options(start: Start<'_>) -> Result<()> {
    let on_kernel = python("options.py", &[KERNEL, KERNEL_V6, KERNEL, KERNEL_V6]);
    let on_stack = python("options.py", &[STACK, STACK_V6, KERNEL, KERNEL_V6]);
    let mut on_stack = start(&[], &words(&on_stack));
    the_same_of_all(16_086, &words(&on_kernel), &mut on_stack)
}

fn the_same_lines(on_kernel: &[&str], own: &[&str], on_stack: &[&str]) -> Result<()> {
    the_same_but(&[], on_kernel, own, on_stack)
}

/// Apart from lines that are known to differ: the kernel's, and the stack's.
fn the_same_but(
    known: &[(&str, &str)],
    on_kernel: &[&str],
    own: &[&str],
    on_stack: &[&str],
) -> Result<()> {
    let mut said = (String::new(), String::new());
    // A thread that comes late on a busy machine, on either stack, waits for what is over.
    for _ in 0..3 {
        let kernel = run(Command::new(on_kernel[0]).args(&on_kernel[1..]))?.expect_code(0)?;
        let stack = run(&mut on_the_stack(own, on_stack))?;
        let stack = stack.expect_code(0)?;
        ensure!(kernel.stdout.lines().count() > 30, "{}", kernel.stdout);
        let mut kernels = kernel.stdout;
        for (kernel, stack) in known {
            ensure!(kernels.contains(kernel), "{kernel}: {kernels}");
            kernels = kernels.replace(kernel, stack);
        }
        said = (kernels, stack.stdout);
        if said.0 == said.1 {
            return Ok(());
        }
    }
    bail!("kernel:\n{}stack:\n{}", said.0, said.1)
}

/// A line for each call of `programs` from `first` on.
fn lines(
    of: Of,
    on_stack: Option<Start<'_>>,
    first: u64,
    programs: u64,
    patience: &str,
) -> Result<Vec<String>> {
    let (first, programs) = (first.to_string(), programs.to_string());
    let address = if on_stack.is_some() { STACK } else { KERNEL };
    let of_pairs = match of {
        Of::DatagramsOfPairs | Of::DatagramsOfPairsV6 => &["pairs"][..],
        _ => &[],
    };
    let own = [address, &first, &programs, patience];
    let program = match of {
        Of::Streams(more) => python("differential.py", &[&own, more].concat()),
        Of::Threads(more) => python("differential_threads.py", &[&own, more].concat()),
        Of::Opening(more) => python(
            "differential_opening.py",
            &[&[address, KERNEL, &first, &programs, patience], more].concat(),
        ),
        Of::Datagrams | Of::DatagramsOfPairs => python(
            "differential_udp.py",
            &[&[address, KERNEL, &first, &programs, patience], of_pairs].concat(),
        ),
        Of::DatagramsV6 | Of::DatagramsOfPairsV6 => {
            let address = if on_stack.is_some() {
                STACK_V6
            } else {
                KERNEL_V6
            };
            let arguments = [address, KERNEL_V6, &first, &programs, patience];
            python("differential_udp.py", &[&arguments, of_pairs].concat())
        }
    };
    let out = run(&mut match on_stack {
        Some(start) if matches!(of, Of::Opening(_)) => start(&[], &words(&program)),
        // The connecting ends are the kernel's.
        Some(start) => start(&["--kernel=10.0.0.2/32"], &words(&program)),
        None => {
            let mut command = Command::new(&program[0]);
            command.args(&program[1..]);
            command
        }
    })?;
    ensure!(out.code == Some(0), "{:?}: {}", out.code, out.stderr);
    Ok(out.stdout.lines().map(str::to_owned).collect())
}

/// Programs whose lines differ, and the first of those lines.
fn differing(
    of: Of,
    start: Start<'_>,
    first: u64,
    programs: u64,
    patience: &str,
) -> Result<BTreeSet<(u64, String)>> {
    let kernel = lines(of, None, first, programs, patience)?;
    let stack = lines(of, Some(start), first, programs, patience)?;
    // One alone may be a short one.
    let least = if programs == 1 { 0 } else { 4 * programs };
    ensure!(kernel.len() as u64 > least, "only {} lines", kernel.len());
    let (kernel, stack) = (by_program(&kernel)?, by_program(&stack)?);
    let mut found = BTreeSet::new();
    for (seed, on_kernel) in &kernel {
        let on_stack = stack.get(seed).map_or(&[][..], Vec::as_slice);
        let same = on_kernel
            .iter()
            .zip(on_stack)
            .take_while(|(kernel, stack)| kernel == stack)
            .count();
        let (kernel, stack) = (on_kernel.get(same), on_stack.get(same));
        if kernel.is_some() || stack.is_some() {
            let shown = |line: Option<&&str>| line.map_or("nothing more", |line| *line).to_owned();
            let (kernel, stack) = (shown(kernel), shown(stack));
            found.insert((*seed, format!("{seed}:\nkernel: {kernel}\nstack:  {stack}")));
        }
    }
    Ok(found)
}

/// Each line begins with its program's seed.
fn by_program(lines: &[String]) -> Result<BTreeMap<u64, Vec<&str>>> {
    let mut programs = BTreeMap::<u64, Vec<&str>>::new();
    for line in lines {
        let (seed, rest) = line.split_once(' ').context(line.clone())?;
        programs.entry(seed.parse()?).or_default().push(rest);
    }
    Ok(programs)
}

/// `hopscope stack run OWN -- PROGRAM`
pub(super) type Start<'a> = &'a dyn Fn(&[&str], &[&str]) -> Command;

#[derive(Clone, Copy)]
pub(super) enum Of {
    /// And what the program is told of how it runs.
    Streams(&'static [&'static str]),
    /// One that waits while another one calls.
    Threads(&'static [&'static str]),
    /// connect, listen, accept, duplicates, sets.
    Opening(&'static [&'static str]),
    Datagrams,
    DatagramsV6,
    /// Of `--mode pipeline`.
    DatagramsOfPairs,
    DatagramsOfPairsV6,
}

fn the_same() -> Result<()> {
    cable()?;
    the_same_programs(Of::Streams(&[]), &on_the_stack)
}

/// Each by the next child: one process at a time has the stack.
fn the_same_of_workers() -> Result<()> {
    cable()?;
    the_same_programs(Of::Streams(&["worker"]), &on_the_stack)
}

fn the_same_of_threads() -> Result<()> {
    cable()?;
    the_same_programs(Of::Threads(&[]), &on_the_stack)
}

fn the_same_of_opening() -> Result<()> {
    cable()?;
    the_same_programs(Of::Opening(&[]), &on_the_stack)
}

fn the_same_of_datagrams() -> Result<()> {
    cable()?;
    // As the cable's, for those that are not to be cut.
    ip("link set lo mtu 1500")?;
    // As many errors as there are.
    std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")?;
    std::fs::write("/proc/sys/net/ipv6/icmp/ratelimit", "0")?;
    the_same_programs(Of::Datagrams, &on_the_stack)?;
    the_same_programs(Of::DatagramsV6, &on_the_stack)
}

pub(super) fn the_same_programs(of: Of, start: Start<'_>) -> Result<()> {
    let few = match of {
        Of::Streams(more) if !more.is_empty() => 24,
        Of::Threads(_) | Of::Opening(_) => 24,
        _ => 60,
    };
    let programs = counts().pick(few, 5_000);
    let mut left = differing(of, start, 1, programs, PATIENCE[0])?;
    for patience in &PATIENCE[1..] {
        let mut still = BTreeSet::new();
        for (seed, _) in left {
            still.extend(differing(of, start, seed, 1, patience)?);
        }
        left = still;
    }
    let shown: Vec<&str> = left.iter().map(|(_, lines)| lines.as_str()).collect();
    ensure!(
        left.is_empty(),
        "{} of {programs} programs:\n{}",
        left.len(),
        shown.join("\n")
    );
    Ok(())
}
