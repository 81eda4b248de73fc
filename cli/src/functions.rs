//! `hopscope functions`: what can be measured, and why not the rest.
use anyhow::bail;
use clap::Args;
use hopscope_probe::attach;
use hopscope_probe::locate::pattern::{self, Pattern};
use hopscope_probe::locate::{Function, Image, mapped_modules};
use hopscope_probe::relocate::Refusal;
use hopscope_probe::relocate::verdict::{ProcessTraits, accept};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct FunctionsArgs {
    /// Functions of every module that this process has mapped
    #[arg(
        short,
        long,
        value_name = "PID",
        required_unless_present = "binary",
        conflicts_with = "binary"
    )]
    pid: Option<i32>,
    /// Functions of a file
    #[arg(short, long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only these: name, module!name, glob, or /regex/; may be repeated
    #[arg(short, long = "function", value_name = "PATTERN")]
    functions: Vec<String>,
    /// One JSON object a line on stdout
    #[arg(long)]
    json: bool,
}

pub fn run(args: FunctionsArgs) -> anyhow::Result<ExitCode> {
    let patterns: Vec<Pattern> = args
        .functions
        .iter()
        .map(|p| Pattern::parse(p))
        .collect::<Result<_, _>>()?;
    let (images, process) = match (&args.binary, args.pid) {
        (Some(path), _) => {
            let image = Image::open(path)?;
            // Nobody knows what else will be in the process: what the file itself implies.
            let process = ProcessTraits {
                throws: image.throws_exceptions(),
                shadow_stack: false,
            };
            (vec![(image, 0)], process)
        }
        (None, Some(pid)) => of_process(pid)?,
        (None, None) => bail!("give -p PID or -b FILE"),
    };
    let mut listing = Listing {
        out: BufWriter::new(std::io::stdout().lock()),
        json: args.json,
        accepted: 0,
        refused: BTreeMap::new(),
    };
    for (image, bias) in &images {
        listing.module(image, *bias, &patterns, process)?;
    }
    if listing.accepted + listing.refused.values().sum::<u64>() == 0 {
        let names = images
            .iter()
            .flat_map(|(image, _)| image.functions())
            .map(|f| f.name.as_str());
        let nearest = pattern::suggest(&patterns, names);
        if nearest.is_empty() {
            bail!("nothing matches {}", args.functions.join(", "));
        }
        bail!(
            "nothing matches {}; the nearest names are: {}",
            args.functions.join(", "),
            nearest.join(", ")
        );
    }
    listing.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn of_process(pid: i32) -> anyhow::Result<(Vec<(Image, u64)>, ProcessTraits)> {
    let preflight = attach::preflight(pid)?;
    let mut images = Vec::new();
    for module in mapped_modules(pid)? {
        match Image::open_mapped(pid, &module) {
            Ok(image) => images.push((image, module.bias)),
            Err(e) => eprintln!("hopscope: {e}"),
        }
    }
    let throws = images.iter().any(|(image, _)| image.throws_exceptions());
    Ok((
        images,
        ProcessTraits {
            throws,
            shadow_stack: preflight.shadow_stack,
        },
    ))
}

struct Listing<W: Write> {
    out: W,
    json: bool,
    accepted: u64,
    refused: BTreeMap<&'static str, u64>,
}

impl<W: Write> Listing<W> {
    fn module(
        &mut self,
        image: &Image,
        bias: u64,
        patterns: &[Pattern],
        process: ProcessTraits,
    ) -> anyhow::Result<()> {
        let module = hopscope_probe::plan::basename(image.path());
        let lines = image.lines();
        let chosen =
            |f: &&Function| patterns.is_empty() || patterns.iter().any(|p| p.matches(module, f));
        for function in image.functions().iter().filter(chosen) {
            let verdict = accept(image, function, process).map(drop);
            match &verdict {
                Ok(()) => self.accepted += 1,
                Err(why) => *self.refused.entry(why.class()).or_default() += 1,
            }
            let place = lines.as_ref().and_then(|l| l.find(function.svma));
            self.line(module, function, bias, place, &verdict)?;
        }
        Ok(())
    }

    fn line(
        &mut self,
        module: &str,
        f: &Function,
        bias: u64,
        place: Option<(String, u32)>,
        verdict: &Result<(), Refusal>,
    ) -> anyhow::Result<()> {
        let address = f.svma.wrapping_add(bias);
        if self.json {
            let (file, line) = place.unzip();
            let line = serde_json::json!({
                "type": "function", "schema": 1, "module": module, "name": f.name, "symbol": f.raw_name,
                "aliases": f.aliases, "file": file, "line": line, "address": address, "svma": f.svma,
                "size": f.size, "source": f.source.as_str(), "fragments": f.fragments.len(),
                "verdict": if verdict.is_ok() { "relocate" } else { "refused" },
                "class": verdict.as_ref().err().map(Refusal::class),
                "reason": verdict.as_ref().err().map(ToString::to_string),
            });
            writeln!(self.out, "{line}")?;
            return Ok(());
        }
        let place = place.map_or(String::new(), |(file, line)| {
            format!("  {}:{line}", short(&file))
        });
        let verdict = match verdict {
            Ok(()) => "relocate".to_owned(),
            Err(why) => format!("refused: {why}"),
        };
        writeln!(
            self.out,
            "{address:#014x} {:>7}  {:<10} {module}!{}{place}  {verdict}",
            f.size,
            f.source.as_str(),
            f.name
        )?;
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let refused: u64 = self.refused.values().sum();
        if self.json {
            let line = serde_json::json!({
                "type": "summary", "schema": 1, "accepted": self.accepted, "refused": refused,
                "refused_by_class": self.refused,
            });
            writeln!(self.out, "{line}")?;
        } else {
            writeln!(
                self.out,
                "{} functions can be measured, {refused} are refused",
                self.accepted
            )?;
            for (class, n) in &self.refused {
                writeln!(self.out, "{n:>12}  {class}")?;
            }
        }
        self.out.flush()?;
        Ok(())
    }
}

/// The last two parts of a path.
fn short(path: &str) -> &str {
    let mut slashes = path.rmatch_indices('/');
    slashes.nth(1).map_or(path, |(at, _)| &path[at + 1..])
}
