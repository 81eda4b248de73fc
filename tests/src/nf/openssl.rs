//! Hand-written assembler of libcrypto: encryption, and its own speed test with its alarms.
use super::measured::bare_and_measured;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, scratch};
use std::fs;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[
        Requirement::Root,
        Requirement::Fsgsbase,
        Requirement::Openssl,
    ];
    suite.case(
        "nf::openssl_encrypts_the_same_with_every_function_measured",
        needs,
        encrypts,
    );
    suite.case(
        "nf::openssl_speed_ends_the_same_with_every_function_measured",
        needs,
        speed,
    );
}

fn encrypts() -> Result<()> {
    let dir = scratch();
    let input = dir.join("input");
    fs::write(
        &input,
        "a line to be encrypted\n".repeat(counts().pick(20_000, 400_000)),
    )?;
    let input = input.to_str().context("path")?;
    let words = "openssl enc -aes-256-cbc -a -pbkdf2 -pass pass:x -S 0011223344556677 -in";
    let command: Vec<&str> = words.split(' ').chain([input]).collect();
    let (bare, output, measured) = bare_and_measured(&command, &dir.join("openssl.hop"))?;
    ensure!(bare == output, "a different output when measured");
    measured.expect_whole(10_000, 10_000)
}

/// Not of ecdhx25519: its functions share an end, so theirs are not seen (KNOWN_ISSUES).
/// How much it did depends on the machine; which lines it says, and that it found all its
/// signatures right, does not.
fn speed() -> Result<()> {
    let algorithms = counts().pick(
        "sha256 ecdsap256",
        "sha256 sha512 aes-128-cbc camellia-128-cbc rsa1024 rsa2048 dsa1024 ecdsap256 ed25519",
    );
    let words = format!("openssl speed -seconds 1 -bytes 1024 -mr {algorithms}");
    let command: Vec<&str> = words.split(' ').collect();
    let (bare, output, measured) = bare_and_measured(&command, &scratch().join("speed.hop"))?;
    let lines = |text: &str| {
        text.replace(|c: char| c.is_ascii_digit(), "")
            .replace('.', "")
    };
    ensure!(
        lines(&bare) == lines(&output),
        "different lines when measured: {bare}\n{output}"
    );
    ensure!(bare.lines().count() >= 3, "{bare}");
    // "+F2:0:2048:2361.5:43666.7": how often a second, or how long each took; never 0.
    let mut fields = output.lines().flat_map(|line| line.split(':').skip(1));
    let nothing = |field: &str| field.contains('.') && field.parse() == Ok(0.0);
    ensure!(!fields.any(nothing), "did nothing: {output}");
    measured.expect_sound(10_000, 100_000)
}
