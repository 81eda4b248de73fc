//! What stamps cost, measured once for each boot, kernel and set of hooks.
use crate::error::Result;
use hopscope_event::slice::{Point, SliceCalibration};
use hopscope_slice::calibrate::{Constants, calibrate};
use hopscope_slice::programs::{Costs, Slicer};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// In memory, and empty after a start of the machine.
const FOLDER: &str = "/run/hopscope";

#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    calibration: SliceCalibration,
    hit_ns: Vec<u32>,
    miss_ns: Vec<u32>,
    begin_ns: u32,
    hand_over_ns: u32,
}

/// Those that were measured before, or else now. Afterwards the programs know them.
///
/// # Errors
/// They cannot be measured.
pub fn measured(slicer: &mut Slicer, anew: bool) -> Result<SliceCalibration> {
    let key = key(slicer);
    let file = file(Path::new(FOLDER), &key);
    if !anew && let Some(kept) = read(&file, &key) {
        slicer.set_costs(kept.costs)?;
        log::info!("what stamps cost was measured before: {}", file.display());
        return Ok(kept.calibration);
    }
    if log::log_enabled!(log::Level::Warn) {
        eprintln!("hopscope: measuring what stamps cost (about a second)");
    }
    let constants = calibrate(slicer)?;
    // Where it cannot be kept, it is measured again the next time.
    if let Err(error) = write(&file, key, &constants) {
        log::info!("{}: {error}: measured again the next time", file.display());
    }
    Ok(constants.calibration)
}

/// All that the constants depend on.
fn key(slicer: &Slicer) -> String {
    let options = slicer.options();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let hooks: Vec<&str> = slicer
        .hooks()
        .iter()
        .flat_map(|hook| hook.hooks.iter().map(String::as_str))
        .collect();
    format!(
        "{} {} {} {} {:?} slots {} snap {} group {} filter {:?}",
        env!("CARGO_PKG_VERSION"),
        boot.trim(),
        hopscope_trace::host::kernel(),
        hooks.join(","),
        options.event,
        options.slots,
        options.snap,
        options.cgroup.display(),
        options.filter,
    )
}

fn file(folder: &Path, key: &str) -> PathBuf {
    let name = format!("slice-{:08x}.json", crc32fast::hash(key.as_bytes()));
    folder.join(name)
}

fn read(file: &Path, key: &str) -> Option<Constants> {
    let kept: Kept = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    if kept.key != key || !is_ours(file) {
        return None;
    }
    let hit_ns: [u32; Point::MAX] = kept.hit_ns.try_into().ok()?;
    let miss_ns: [u32; Point::MAX] = kept.miss_ns.try_into().ok()?;
    Some(Constants {
        calibration: kept.calibration,
        costs: Costs {
            hit_ns,
            miss_ns,
            begin_ns: kept.begin_ns,
            hand_over_ns: kept.hand_over_ns,
        },
    })
}

/// Nobody else may say what is taken out of times.
fn is_ours(file: &Path) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    let paths = [Some(file), file.parent()];
    paths.into_iter().flatten().all(|path| {
        fs::symlink_metadata(path).is_ok_and(|m| m.uid() == own && m.mode() & 0o022 == 0)
    })
}

fn write(file: &Path, key: String, constants: &Constants) -> std::io::Result<()> {
    let costs = constants.costs;
    let kept = Kept {
        key,
        calibration: constants.calibration.clone(),
        hit_ns: costs.hit_ns.to_vec(),
        miss_ns: costs.miss_ns.to_vec(),
        begin_ns: costs.begin_ns,
        hand_over_ns: costs.hand_over_ns,
    };
    if let Some(folder) = file.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    // Whole or not at all: another start may read meanwhile.
    let new = file.with_extension(format!("new-{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    let mut out = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let done = std::io::Write::write_all(&mut out, &serde_json::to_vec(&kept)?)
        .and_then(|()| fs::rename(&new, file));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::slice::sample;

    #[test]
    fn what_is_kept_comes_back_for_the_same_hooks_only() {
        let folder = std::env::temp_dir().join(format!("hopscope-kept-{}", std::process::id()));
        let file = file(&folder, "a");
        let constants = Constants {
            calibration: sample::entry().calibration,
            costs: Costs {
                hit_ns: [7; Point::MAX],
                miss_ns: [3; Point::MAX],
                begin_ns: 40,
                hand_over_ns: 180,
            },
        };
        write(&file, "a".into(), &constants).unwrap();
        assert_eq!(read(&file, "a"), Some(constants));
        assert_eq!(read(&file, "b"), None, "of other hooks");
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(read(&file, "a"), None, "anybody may write it");
        fs::remove_dir_all(&folder).unwrap();
    }
}
