//! Software that loads most of itself.
use crate::recording::{Report, summary};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, hopscope_bin, scratch};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "dlopen::an_extension_of_python",
        &[Requirement::Python3],
        python,
    );
}

/// It imports it by itself, and calls it once it is measured.
fn python() -> Result<()> {
    const SCRIPT: &str = r#"
import _json, ctypes, time
at = ctypes.cast(ctypes.CDLL(_json.__file__).PyInit__json, ctypes.c_void_p).value
watchdog = time.monotonic() + 60
while ctypes.string_at(at, 1) != b"\xe9":
    assert time.monotonic() < watchdog, "never measured"
for i in range(1000):
    _json.encode_basestring_ascii("\u00e9%d" % i)
print(_json.encode_basestring_ascii("\u00e9"))
"#;
    let file = scratch().join("python.hop");
    let mut record = Command::new(hopscope_bin());
    record
        .args(["record", "--json", "--no-calibration", "--follow-dlopen"])
        .args(["-f", "_json*!*", "-o"])
        .arg(&file)
        .args(["--", "/usr/bin/python3", "-c", SCRIPT]);
    let out = run(&mut record)?.expect_code(0)?;
    ensure!(out.stdout.trim() == r#""\u00e9""#, "{}", out.stdout);
    let said = summary(&out.stderr)?;
    ensure!(said["notes"].to_string().contains("_json"), "{said}");
    let report = Report::read(&file)?;
    report.expect_balanced()?;
    let calls = report.functions.values().map(|b| b["entries"]);
    ensure!(calls.max() >= Some(1001), "{:?}", report.functions);
    Ok(())
}
