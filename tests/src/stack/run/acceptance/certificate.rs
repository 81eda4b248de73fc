//! A certificate for the addresses of both ends of the cable.
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result};
use hopscope_tests::command::run;
use std::process::Command;

/// Paths of the certificate, which those trust that know it, and of its key.
pub(super) fn certificate() -> Result<[String; 2]> {
    let folder = files();
    let at = |name: &str| Some(folder.join(name).to_str()?.to_owned());
    let paths = [
        at("certificate").context("path")?,
        at("key").context("path")?,
    ];
    let names = format!("subjectAltName=IP:{KERNEL},IP:{STACK}");
    let mut openssl = Command::new("openssl");
    openssl
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=cable", "-addext", &names])
        .args(["-out", &paths[0], "-keyout", &paths[1]]);
    run(&mut openssl)?.expect_code(0)?;
    Ok(paths)
}
