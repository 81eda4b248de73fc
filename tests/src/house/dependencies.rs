//! Dependencies point one way only.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Suite, repository};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crate → the crates of ours that it may name.
const ALLOWED: &[(&str, &[&str])] = &[
    ("hopscope-event", &[]),
    ("hopscope-trace", &["hopscope-event"]),
    // Any process of Linux; nothing of probes, rings or recordings.
    ("hopscope-process", &["hopscope-event"]),
    (
        "hopscope-probe",
        &[
            "hopscope-event",
            "hopscope-process",
            "hopscope-trace",
            "hopscope-unwind",
        ],
    ),
    // Bytes of files in, bytes out; nothing of ours.
    ("hopscope-unwind", &[]),
    (
        "hopscope-slice",
        &["hopscope-bpf", "hopscope-event", "hopscope-trace"],
    ),
    // Loading and reading BPF programs; nothing of ours.
    ("hopscope-bpf", &[]),
    // Neither knows where the records come from.
    ("hopscope-analyze", &["hopscope-event"]),
    ("hopscope-report", &["hopscope-event", "hopscope-analyze"]),
    // Where recordings, analysis and reports meet.
    (
        "hopscope-read",
        &[
            "hopscope-analyze",
            "hopscope-event",
            "hopscope-netio",
            "hopscope-report",
            "hopscope-trace",
        ],
    ),
    // What a machine has: each thing is asked of whoever needs it.
    ("hopscope-check", &["hopscope-slice"]),
    // Code to be measured, optimized in each build.
    (
        "hopscope-calibration",
        &["hopscope-event", "hopscope-process"],
    ),
    // What runs, from attaching to the end.
    (
        "hopscope-session",
        &[
            "hopscope-analyze",
            "hopscope-calibration",
            "hopscope-event",
            "hopscope-probe",
            "hopscope-process",
            "hopscope-read",
            "hopscope-report",
            "hopscope-slice",
            "hopscope-trace",
        ],
    ),
    (
        "hopscope",
        &[
            "hopscope-event",
            "hopscope-trace",
            "hopscope-process",
            "hopscope-probe",
            "hopscope-slice",
            "hopscope-analyze",
            "hopscope-report",
            "hopscope-read",
            "hopscope-session",
            "hopscope-netio",
            "hopscope-load",
            "hopscope-openloop",
            "hopscope-serving",
            "hopscope-splice",
            "hopscope-stack-bypass",
            "hopscope-stack-engine",
            "hopscope-stack-instance",
            "hopscope-bench-flags",
            "hopscope-check",
            "hopscope-compare",
            "hopscope-vnet",
        ],
    ),
    ("hopscope-netio", &["hopscope-event", "hopscope-openloop"]),
    // Readiness of descriptors; nothing of ours.
    ("hopscope-eventloop", &[]),
    // Arrival times, seeded, and latency; nothing of ours.
    ("hopscope-openloop", &[]),
    // One file format and one clock; nothing else of `measure`.
    (
        "hopscope-splice",
        &[
            "hopscope-bpf",
            "hopscope-event",
            "hopscope-eventloop",
            "hopscope-netio",
            "hopscope-trace",
        ],
    ),
    (
        "hopscope-load",
        &[
            "hopscope-event",
            "hopscope-eventloop",
            "hopscope-netio",
            "hopscope-openloop",
            "hopscope-trace",
        ],
    ),
    // Control sockets, privileges, recordings of events: for servers of any kind.
    (
        "hopscope-serving",
        &["hopscope-event", "hopscope-eventloop", "hopscope-trace"],
    ),
    (
        "hopscope-vnet",
        &[
            "hopscope-event",
            "hopscope-eventloop",
            "hopscope-netio",
            "hopscope-openloop",
            "hopscope-serving",
            "hopscope-trace",
        ],
    ),
    // Frames and time in, frames out. Devices and random numbers are those of its tests.
    (
        "hopscope-stack-engine",
        &["hopscope-event", "hopscope-netio", "hopscope-openloop"],
    ),
    // Linux' numbers for the engine's values.
    ("hopscope-stack-abi", &["hopscope-stack-engine"]),
    // Watches programs that the library is loaded with: the mark is theirs both.
    (
        "hopscope-stack-bypass",
        &["hopscope-bpf", "hopscope-stack-abi"],
    ),
    // Loaded by packetdrill.
    (
        "hopscope-stack-packetdrill",
        &["hopscope-stack-abi", "hopscope-stack-engine"],
    ),
    // Loaded with other people's programs.
    (
        "hopscope-stack-preload",
        &[
            "hopscope-netio",
            "hopscope-stack-abi",
            "hopscope-stack-engine",
            "hopscope-stack-instance",
        ],
    ),
    // Where the engine meets devices; the bytes that it sends are those of `load`.
    (
        "hopscope-stack-instance",
        &[
            "hopscope-event",
            "hopscope-eventloop",
            "hopscope-load",
            "hopscope-netio",
            "hopscope-openloop",
            "hopscope-serving",
            "hopscope-stack-abi",
            "hopscope-stack-engine",
        ],
    ),
    // Another kernel, for benches and tests.
    ("hopscope-guest", &[]),
    // Starts the programs that it compares.
    (
        "hopscope-bench",
        &[
            "hopscope-bench-flags",
            "hopscope-compare",
            "hopscope-event",
            "hopscope-guest",
            "hopscope-trace",
        ],
    ),
    // The command line that `hopscope` and `hopscope-bench` share.
    ("hopscope-bench-flags", &["hopscope-compare"]),
    ("hopscope-compare", &[]),
    // The tests look from outside, at processes and files.
    (
        "hopscope-tests",
        &[
            "hopscope-event",
            "hopscope-trace",
            "hopscope-netio",
            "hopscope-openloop",
            "hopscope-guest",
        ],
    ),
];

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::dependencies_point_one_way", &[], one_way);
    suite.case("house::every_package_has_a_rule", &[], every_package);
}

fn one_way() -> Result<()> {
    for (package, dependency) in edges()? {
        let (_, allowed) = ALLOWED
            .iter()
            .find(|(name, _)| *name == package)
            .with_context(|| format!("no rule for {package}"))?;
        ensure!(
            allowed.contains(&dependency.as_str()),
            "{package} must not depend on {dependency}"
        );
    }
    Ok(())
}

fn every_package() -> Result<()> {
    for (name, _) in packages()? {
        let ruled = ALLOWED.iter().any(|(package, _)| *package == name);
        ensure!(ruled, "no rule says what {name} may depend on");
    }
    Ok(())
}

/// Every edge between two packages of the workspace, whatever table of the manifest it is in.
fn edges() -> Result<Vec<(String, String)>> {
    let packages = packages()?;
    let mut edges = Vec::new();
    for (name, dependencies) in &packages {
        for dependency in dependencies {
            if packages.iter().any(|(other, _)| other == dependency) {
                edges.push((name.clone(), dependency.clone()));
            }
        }
    }
    ensure!(
        !edges.is_empty(),
        "no edge found: the manifests were not read"
    );
    Ok(edges)
}

/// Packages of the workspace with all their dependencies.
fn packages() -> Result<Vec<(String, Vec<String>)>> {
    let name = |value: &Value| value["name"].as_str().unwrap_or("").to_string();
    let list = metadata()?;
    let list = list["packages"].as_array().context("packages")?;
    Ok(list
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array();
            let names = dependencies.into_iter().flatten().map(name).collect();
            (name(package), names)
        })
        .collect())
}

/// Where each package of the workspace lies.
pub(super) fn folders() -> Result<Vec<PathBuf>> {
    let list = metadata()?;
    let list = list["packages"].as_array().context("packages")?;
    let folder = |package: &Value| {
        let manifest = package["manifest_path"].as_str().map(Path::new);
        let folder = manifest.and_then(Path::parent).map(Path::to_owned);
        folder.context("manifest_path")
    };
    list.iter().map(folder).collect()
}

/// As cargo reads the manifests.
fn metadata() -> Result<Value> {
    let cargo = std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from);
    let out = Command::new(cargo)
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(repository())
        .output()?;
    ensure!(
        out.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    Ok(serde_json::from_slice(&out.stdout)?)
}
