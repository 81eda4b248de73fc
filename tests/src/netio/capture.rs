//! Files of ours in tshark's eyes, and tshark's in ours.
use super::frames::frame;
use anyhow::{Result, ensure};
use hopscope_netio::capture::{CaptureReader, InterfaceCounts, PcapWriter, PcapngWriter};
use hopscope_tests::command::run as command;
use hopscope_tests::scratch;
use std::fs::File;
use std::path::Path;
use std::process::Command;

const FRAMES: u32 = 200;
const START_NS: u64 = 1_800_000_000_123_456_789;

pub(super) fn run() -> Result<()> {
    let directory = scratch();
    let (ng, classic) = (directory.join("a.pcapng"), directory.join("a.pcap"));
    let mut writer = PcapngWriter::new(File::create(&ng)?)?;
    let interface = writer.interface("left")?;
    let mut plain = PcapWriter::new(File::create(&classic)?)?;
    for number in 0..FRAMES {
        let (time_ns, bytes) = (time(number), frame(number));
        let comment = comment(number);
        let wire_len = bytes.len() + 7;
        writer.frame(interface, time_ns, &bytes, wire_len, comment.as_deref())?;
        plain.frame(time_ns, &bytes, wire_len)?;
    }
    let seen = InterfaceCounts {
        received: 1234,
        dropped: 567,
    };
    writer.statistics(interface, START_NS, seen)?;
    writer.finish()?;
    plain.finish()?;
    for (file, comments) in [(&ng, true), (&classic, false)] {
        let said = tshark(&[
            "-r",
            &file.display().to_string(),
            "-T",
            "fields",
            "-e",
            "frame.time_epoch",
            "-e",
            "frame.cap_len",
            "-e",
            "frame.len",
            "-e",
            "frame.comment",
        ])?;
        let expected = (0..FRAMES).map(|number| {
            let (time_ns, len) = (time(number), frame(number).len());
            let (s, ns) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
            let comment = comment(number).filter(|_| comments).unwrap_or_default();
            format!("{s}.{ns:09}\t{len}\t{}\t{comment}\n", len + 7)
        });
        let expected: String = expected.collect();
        ensure!(said == expected, "{}:\n{said}", file.display());
        // Written again by tshark, in each of its formats.
        for format in ["pcapng", "pcap", "nsecpcap"] {
            let copy = directory.join(format!("copy.{format}"));
            let (from, to) = (file.display().to_string(), copy.display().to_string());
            tshark(&["-r", &from, "-w", &to, "-F", format])?;
            same(&copy, format == "pcap")?;
        }
    }
    Ok(())
}

fn same(path: &Path, microseconds: bool) -> Result<()> {
    let mut reader = CaptureReader::open(path)?;
    let mut number = 0;
    while let Some(read) = reader.next_frame()? {
        let bytes = frame(number);
        let time_ns = match microseconds {
            true => time(number) / 1_000 * 1_000,
            false => time(number),
        };
        ensure!(
            read.bytes == bytes && read.wire_len == bytes.len() + 7,
            "{}: frame {number}",
            path.display()
        );
        ensure!(
            read.time_ns == Some(time_ns),
            "{}: {read:?}",
            path.display()
        );
        number += 1;
    }
    ensure!(number == FRAMES, "{number} frames in {}", path.display());
    ensure!(reader.counts().cut == u64::from(FRAMES));
    Ok(())
}

fn time(number: u32) -> u64 {
    START_NS + u64::from(number) * 1_001
}

fn comment(number: u32) -> Option<String> {
    number
        .is_multiple_of(3)
        .then(|| format!("frame {number}: µs"))
}

fn tshark(arguments: &[&str]) -> Result<String> {
    let out = command(Command::new("tshark").args(arguments))?.expect_code(0)?;
    Ok(out.stdout)
}
