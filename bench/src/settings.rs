//! What the command line leaves out.
use anyhow::{Context, anyhow};
use hopscope_bench::Settings;
use hopscope_bench_flags::Common;
use std::path::PathBuf;

pub(crate) fn settings(common: &Common, quiet: bool) -> anyhow::Result<Settings> {
    Ok(Settings {
        hopscope: match &common.hopscope {
            Some(path) => path.clone(),
            None => hopscope()?,
        },
        build_dir: match &common.build_dir {
            Some(dir) => std::path::absolute(dir)?,
            None => default_build_dir()?,
        },
        quick: common.quick || common.least,
        least: common.least,
        quiet,
    })
}

/// The one that started this program says where it is, as cargo does; otherwise the one beside this program.
fn hopscope() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("HOPSCOPE") {
        return Ok(path.into());
    }
    let own = std::env::current_exe();
    let own = own.map_err(|error| anyhow!("cannot find the path of this program: {error}"))?;
    Ok(own.with_file_name("hopscope"))
}

/// Beside a Cargo workspace's other build results, otherwise in the user's cache.
fn default_build_dir() -> anyhow::Result<PathBuf> {
    let current = std::env::current_dir();
    let current = current.map_err(|error| anyhow!("cannot tell the current directory: {error}"))?;
    if current.join("Cargo.toml").exists() {
        return Ok(current.join("target/bench"));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .context("no home directory; say --build-dir DIR")?;
    Ok(cache.join("hopscope/bench"))
}

/// What scripts/install-vm unpacked: the folder asked for, or `vm` beside the build directory.
pub(crate) fn kernel(dir: Option<&PathBuf>, settings: &Settings) -> PathBuf {
    dir.cloned()
        .unwrap_or_else(|| settings.build_dir.with_file_name("vm"))
}
