//! The README is short, and what it and ARCHITECTURE.md name is there.
use anyhow::{Result, ensure};
use hopscope_tests::{Suite, hopscope, repository};

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::readme_is_short", &[], is_short);
    suite.case("house::readme_targets_exist", &[], targets_exist);
    suite.case("house::readme_subcommands_exist", &[], subcommands_exist);
    suite.case("house::named_paths_exist", &[], paths_exist);
}

fn readme() -> Result<String> {
    Ok(std::fs::read_to_string(repository().join("README.md"))?)
}

fn is_short() -> Result<()> {
    let lines = readme()?.lines().count();
    ensure!(lines <= 150, "{lines} lines; 150 is the most");
    Ok(())
}

fn targets_exist() -> Result<()> {
    let makefile = std::fs::read_to_string(repository().join("Makefile"))?;
    let targets = words_after(&readme()?, "make ");
    for must in ["demo", "test"] {
        ensure!(targets.contains(&must.to_string()), "no `make {must}`");
    }
    for target in targets {
        ensure!(
            makefile
                .lines()
                .any(|line| line.starts_with(&format!("{target}:"))),
            "README says `make {target}`, the Makefile has no such target"
        );
    }
    Ok(())
}

fn subcommands_exist() -> Result<()> {
    let commands = words_after(&readme()?, "hopscope ");
    ensure!(!commands.is_empty(), "the README shows no command");
    for command in commands {
        let out = hopscope(&[&command, "--help"])?;
        ensure!(out.code == Some(0), "hopscope {command} --help: {out:?}");
    }
    Ok(())
}

/// Whatever a page names between back ticks and below a folder of ours.
fn paths_exist() -> Result<()> {
    let tops = [
        "measure/",
        "fastpath/",
        "bench/",
        "cli/",
        "demo/",
        "tests/",
        "docs/",
        "scripts/",
        ".ci/",
    ];
    let mut named = 0;
    for page in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "KNOWN_ISSUES.md",
    ] {
        let text = std::fs::read_to_string(repository().join(page))?;
        for word in text.split('`').skip(1).step_by(2) {
            // Capitals stand for a name of the reader's choice.
            let pattern = word.contains(|c: char| c.is_ascii_uppercase() || "* ".contains(c));
            if pattern || !tops.iter().any(|top| word.starts_with(top)) {
                continue;
            }
            let path = repository().join(word);
            let there = path.exists() || path.with_extension("rs").exists();
            ensure!(there, "{page} names {word}, which is not there");
            named += 1;
        }
    }
    ensure!(named > 5, "only {named} paths found");
    Ok(())
}

/// Words that follow `lead` inside code: at the start of a line of a block, or after a back tick.
fn words_after(text: &str, lead: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
            continue;
        }
        let ticked = format!("`{lead}");
        let mut starts: Vec<&str> = line.split(&ticked).skip(1).collect();
        let command = line.trim_start().trim_start_matches("sudo ");
        if let (true, Some(rest)) = (in_block, command.strip_prefix(lead)) {
            starts.push(rest);
        }
        for rest in starts {
            let end = rest
                .find(|c: char| !c.is_ascii_lowercase() && c != '-')
                .unwrap_or(rest.len());
            let word = &rest[..end];
            if !word.is_empty() && !word.starts_with('-') {
                words.push(word.to_string());
            }
        }
    }
    words
}
