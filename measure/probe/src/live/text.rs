//! Frees private copies of text pages that equal their file again: a page
//! once written stays the process's own copy, whatever it holds.
use super::error::LiveError;
use super::pages::{self, PAGE};
use super::patch;
use super::site::Patch;
use hopscope_process::maps::{self, Mapping};
use hopscope_process::memory::TargetMemory;
use hopscope_process::write_track::Pages;
use hopscope_process::{StoppedProcess, procfs};
use nix::libc;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// What is looked at together, and how much of it in one stop of one thread: about a millisecond.
const WINDOW: u64 = 512 << 10;
const CALLS_A_STOP: usize = 16;
const WINDOWS_A_STOP: usize = 4;

/// Bytes given back, and the longest stop of the main thread for it. Only pages of `patches`, only
/// where a file is mapped that the process cannot write there, and only when every byte is equal.
pub(super) fn give_back(
    pid: i32,
    memory: &TargetMemory,
    patches: &[Patch],
) -> Result<(u64, Duration), LiveError> {
    let mut ours: Vec<u64> = patches.iter().flat_map(|p| [p.at, p.at + 4]).collect();
    ours.iter_mut().for_each(|at| *at &= !(PAGE - 1));
    ours.dedup();
    let mut windows: Vec<&[u64]> = ours.chunk_by(|a, b| a / WINDOW == b / WINDOW).collect();
    let (mut given, mut longest) = (0, Duration::ZERO);
    let read_maps = || maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"));
    while !windows.is_empty() {
        // Of files beforehand: a file system may take its time, or never answer.
        let mappings = read_maps()?;
        let next = windows.iter().take(WINDOWS_A_STOP);
        let files: Vec<_> = next.map(|w| originals(pid, &mappings, w)).collect();
        let mut one = hopscope_process::stop_one(pid)?;
        let mappings = read_maps();
        let mut done = 0;
        let result = mappings.and_then(|mappings| {
            let mut calls = 0;
            for (window, originals) in windows.iter().zip(&files) {
                if calls >= CALLS_A_STOP {
                    break;
                }
                done += 1;
                for run in unchanged(pid, memory, &mappings, originals, window)? {
                    calls += 1;
                    given += drop_copies(&mut one, &run)?;
                }
            }
            Ok(())
        });
        let pause = one.resume()?.pause();
        longest = longest.max(pause);
        result?;
        windows.drain(..done);
        if !windows.is_empty() {
            patch::let_run(pause);
        }
    }
    Ok((given, longest))
}

/// What a file holds of what is mapped.
struct Original {
    mapping: Mapping,
    range: Range<u64>,
    bytes: Vec<u8>,
}

/// Of the pages of `window`, where a file is mapped that the process cannot write there.
fn originals(pid: i32, mappings: &[Mapping], window: &[u64]) -> Vec<Original> {
    let holder = procfs::memory_holder(pid);
    let (first, last) = (window[0], window[window.len() - 1] + PAGE);
    let around = |m: &&Mapping| m.range.start < last && first < m.range.end;
    let of_files = |m: &&Mapping| !m.writable && !m.shared && m.readable && m.inode != 0;
    let mapped = mappings.iter().filter(around).filter(of_files);
    let originals = mapped.filter_map(|m| {
        let (start, end) = (m.range.start, m.range.end);
        let file = File::open(format!("/proc/{holder}/map_files/{start:x}-{end:x}")).ok()?;
        let range = first.max(start)..last.min(end);
        let bytes = contents(&file, m.offset + (range.start - start), &range);
        Some(Original {
            mapping: m.clone(),
            range,
            bytes,
        })
    });
    originals.collect()
}

/// Runs that hold pages of `window`, all equal to the file's, and else only what was never copied.
fn unchanged(
    pid: i32,
    memory: &TargetMemory,
    mappings: &[Mapping],
    originals: &[Original],
    window: &[u64],
) -> Result<Vec<Range<u64>>, LiveError> {
    let mut runs = Vec::new();
    // The same mapping as when its file was read.
    for original in originals.iter().filter(|o| mappings.contains(&o.mapping)) {
        let Original {
            range, bytes: file, ..
        } = original;
        let copied = pages::resident(pid, range, Pages::Anonymous)?.unwrap_or_default();
        let mut copied = copied
            .iter()
            .flat_map(|r| r.clone().step_by(PAGE as usize))
            .peekable();
        if copied.peek().is_none() {
            continue;
        }
        let mut now = vec![0; (range.end - range.start) as usize];
        if memory.read(range.start, &mut now).is_err() {
            continue;
        }
        let mut run: Option<Range<u64>> = None;
        for at in copied {
            let wanted = window.binary_search(&at).is_ok();
            let page = (at - range.start) as usize..(at - range.start + PAGE) as usize;
            if wanted
                && file
                    .get(page.clone())
                    .is_some_and(|file| *file == now[page])
            {
                let start = run.as_ref().map_or(at, |r| r.start);
                run = Some(start..at + PAGE);
            } else {
                // Changed by others: it must stay.
                runs.extend(run.take());
            }
        }
        runs.extend(run);
    }
    Ok(runs)
}

/// Of a file, as much as there is of what is mapped in `range`; the rest of its last page is zero.
fn contents(file: &File, offset: u64, range: &Range<u64>) -> Vec<u8> {
    let mut wanted = vec![0; (range.end - range.start) as usize];
    let mut len = 0;
    while let Ok(n @ 1..) = file.read_at(&mut wanted[len..], offset + len as u64) {
        len += n;
    }
    wanted.truncate(len.next_multiple_of(PAGE as usize));
    wanted
}

/// The next access reads the file's page again. Locked memory stays (EINVAL): then it is wanted.
fn drop_copies(one: &mut StoppedProcess, run: &Range<u64>) -> Result<u64, LiveError> {
    let len = run.end - run.start;
    let args = [run.start, len, libc::MADV_DONTNEED as u64, 0, 0, 0];
    match one.remote_call(libc::SYS_madvise, args)? {
        0 => Ok(len),
        _ => Ok(0),
    }
}
