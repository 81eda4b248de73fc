//! The text format as its documentation has it: whatever a strict reader would refuse is refused here.
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Labels = BTreeMap<String, String>;

#[derive(Default)]
struct Family {
    kind: String,
    samples: Vec<(String, Labels, f64)>,
}

/// Whether all of it is well formed, and says what `stat` says.
pub(super) fn check(text: &str, stat: &Value) -> Result<()> {
    let families = read(text)?;
    for (name, family) in &families {
        ensure!(!family.samples.is_empty(), "{name} has no samples");
        match family.kind.as_str() {
            "counter" => ensure!(name.ends_with("_total"), "{name}"),
            "gauge" => ensure!(!name.ends_with("_total"), "{name}"),
            "histogram" => histogram(name, family)?,
            kind => bail!("{name}: {kind}"),
        }
        let names: BTreeSet<_> = family
            .samples
            .iter()
            .map(|(name, labels, _)| (name, labels))
            .collect();
        ensure!(
            names.len() == family.samples.len(),
            "{name}: a sample twice"
        );
    }
    for direction in ["tx", "rx"] {
        let queue = &stat["pairs"][0][direction];
        for (name, field) in [
            ("kicks", "kicks"),
            ("calls", "calls"),
            ("packets", "packets"),
            ("bytes", "bytes"),
            ("found", "found"),
            ("emptied", "emptied"),
        ] {
            let family = &families[&format!("hopscope_vnet_{name}_total")];
            let found = family
                .samples
                .iter()
                .find(|(_, labels, _)| labels["queue"] == direction);
            let value = found.context("a sample")?.2;
            ensure!(
                queue[field] == value as u64,
                "{name} {direction}: {value} {queue}"
            );
        }
        let holds = families["hopscope_vnet_hold_seconds"].samples.iter();
        let count = holds
            .filter(|(name, labels, _)| name.ends_with("_count") && labels["queue"] == direction);
        let count: f64 = count.map(|(_, _, value)| value).sum();
        ensure!(
            count as u64 == super::by_policy(queue, "/hold/count")?,
            "{direction}: {count}"
        );
    }
    Ok(())
}

fn read(text: &str) -> Result<BTreeMap<String, Family>> {
    ensure!(text.ends_with('\n'), "the last line does not end");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut now = String::new();
    let mut helped = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, _) = rest.split_once(' ').with_context(|| line.to_owned())?;
            ensure!(helped.insert(name.to_owned()), "HELP twice: {line}");
            now = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').with_context(|| line.to_owned())?;
            ensure!(name == now, "TYPE not behind its HELP: {line}");
            let family = families.entry(name.into()).or_default();
            ensure!(
                family.kind.is_empty() && family.samples.is_empty(),
                "TYPE twice: {line}"
            );
            family.kind = kind.into();
        } else {
            let (name, labels, value) = sample(line).with_context(|| line.to_owned())?;
            let family = families.get_mut(&now).context("a sample before its TYPE")?;
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            let is_own = name == now || family.kind == "histogram" && base == Some(now.as_str());
            ensure!(is_own, "{line}: not of {now}");
            family.samples.push((name, labels, value));
        }
    }
    Ok(families)
}

fn sample(line: &str) -> Result<(String, Labels, f64)> {
    let (head, value) = line.rsplit_once(' ').context("no value")?;
    let (name, labels) = match head.split_once('{') {
        None => (head, Labels::new()),
        Some((name, rest)) => {
            let mut labels = Labels::new();
            for pair in rest.strip_suffix('}').context("no }")?.split(',') {
                let (label, value) = pair.split_once("=\"").context("no =\"")?;
                let value = value.strip_suffix('"').context("no \"")?;
                ensure!(
                    !value.contains(['"', '\\', '\n']) && is_name(label),
                    "{pair}"
                );
                ensure!(
                    labels.insert(label.into(), value.into()).is_none(),
                    "{label} twice"
                );
            }
            (name, labels)
        }
    };
    ensure!(is_name(name), "{name} is no name");
    Ok((name.into(), labels, value.parse()?))
}

fn is_name(text: &str) -> bool {
    let fair = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(fair)
}

/// Ends that grow, numbers that do not shrink, +Inf as the last, and the count the same.
fn histogram(name: &str, family: &Family) -> Result<()> {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (of, labels, value) in &family.samples {
        let mut labels = labels.clone();
        if let Some(end) = labels.remove("le") {
            ensure!(of.ends_with("_bucket"), "{of} has le");
            let end = if end == "+Inf" {
                f64::INFINITY
            } else {
                end.parse()?
            };
            series.entry(labels).or_default().push((end, *value));
        }
    }
    for (labels, buckets) in &series {
        let grows = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        ensure!(
            buckets.windows(2).all(grows),
            "{name} {labels:?}: {buckets:?}"
        );
        let last = buckets.last().context("no bucket")?;
        ensure!(last.0 == f64::INFINITY, "{name}: no +Inf");
        for end in ["_sum", "_count"] {
            let of = family
                .samples
                .iter()
                .find(|(of, found, _)| *of == format!("{name}{end}") && found == labels);
            let (_, _, value) = of.with_context(|| format!("{name}{end} {labels:?}"))?;
            ensure!(
                end == "_sum" || *value == last.1,
                "{name} {labels:?}: count {value}"
            );
        }
    }
    Ok(())
}
