//! l3fwd's rule files.
use anyhow::Result;
use std::fmt::Write;
use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Copy)]
pub(super) enum Lookup {
    Acl,
    Lpm,
}

/// Of each kind: permitted and denied.
const RULES: u16 = 500;

/// For the packets of `packets::mix`, and a route to each port for the last ones.
pub(super) fn write(dir: &Path, lookup: Lookup) -> Result<()> {
    let (v4, v6) = match lookup {
        Lookup::Acl => (access_list()?, ACCESS_LIST_V6),
        Lookup::Lpm => (prefixes()?, PREFIXES_V6),
    };
    fs::write(dir.join("rules4"), v4)?;
    fs::write(dir.join("rules6"), v6)?;
    Ok(())
}

const ACCESS_LIST_V6: &str = "\
@2001:db8:0:0:0:0:a00:0/104 0:0:0:0:0:0:0:0/0 0 : 65535 0 : 65535 0x00/0x00
R2001:db8:0:0:0:0:0:0/64 2001:db8:0:0:0:0:c612:0/113 0 : 65535 0 : 65535 0x11/0xff 1
";
const PREFIXES_V6: &str = "\
R2001:db8:0:0:0:0:c612:0/113 1
R2001:db8:0:0:0:0:c612:8000/113 0
";

fn access_list() -> Result<String> {
    let mut text = String::new();
    for port in 0..2 {
        let any = "0 : 65535 0 : 65535 0x11/0xff";
        writeln!(text, "R0.0.0.0/0 198.19.{port}.0/24 {any} {port}")?;
    }
    for rule in 0..RULES {
        let (high, low, to) = (rule / 250, rule % 250, rule % 250 % 200);
        let (port, out) = (1000 + rule, rule % 2);
        writeln!(
            text,
            "R10.{low}.{high}.0/24 198.18.{to}.0/24 0 : 65535 {port} : {port} 0x11/0xff {out}"
        )?;
        writeln!(
            text,
            "R9.{low}.{high}.0/24 198.18.0.0/16 0 : 65535 0 : 1023 0x00/0x00 {out}"
        )?;
        writeln!(
            text,
            "@11.{low}.{high}.0/24 198.18.0.0/15 0 : 65535 80 : 80 0x06/0xff"
        )?;
    }
    Ok(text)
}

fn prefixes() -> Result<String> {
    let mut text = String::from("R198.18.0.0/15 1\nR198.19.0.0/24 0\n");
    for net in (0..200).step_by(2) {
        writeln!(text, "R198.18.{net}.0/24 0")?;
        writeln!(text, "R198.18.{net}.128/25 1")?;
        writeln!(text, "R198.18.{net}.9/32 1")?;
    }
    Ok(text)
}
