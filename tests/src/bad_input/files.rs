//! Files that cannot be read or written.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Suite, hopscope, repository, scratch};

/// Commands that read a recording.
const READERS: &[&str] = &["report", "info"];

pub(super) fn register(suite: &mut Suite) {
    suite.case("bad_input::no_such_recording", &[], || {
        for command in READERS {
            hopscope(&[command, "/no/such/file.hop"])?.expect_refusal(&["/no/such/file.hop"])?;
        }
        Ok(())
    });
    suite.case("bad_input::empty_recording", &[], || refused(b""));
    suite.case("bad_input::text_instead_of_a_recording", &[], || {
        let manifest = std::fs::read(repository().join("Cargo.toml"))?;
        refused(&manifest)
    });
    suite.case("bad_input::zeros_instead_of_a_recording", &[], || {
        refused(&[0; 100_000])
    });
    suite.case("bad_input::directory_instead_of_a_recording", &[], || {
        for command in READERS {
            hopscope(&[command, "/proc"])?.expect_refusal(&["/proc"])?;
        }
        Ok(())
    });
    suite.case("bad_input::functions_of_a_file_that_is_no_elf", &[], || {
        let path = scratch().join("text");
        std::fs::write(&path, "int main() {}\n")?;
        let path = path.to_str().context("path")?;
        hopscope(&["functions", "-b", path])?.expect_refusal(&[path])
    });
}

fn refused(content: &[u8]) -> Result<()> {
    let path = scratch().join("bad.hop");
    std::fs::write(&path, content)?;
    let name = path.to_str().context("path")?;
    for command in READERS {
        hopscope(&[command, name])?.expect_refusal(&["bad.hop"])?;
    }
    ensure!(std::fs::read(&path)? == content, "the file was changed");
    Ok(())
}
