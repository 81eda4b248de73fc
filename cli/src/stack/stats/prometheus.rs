//! Prometheus' text format, version 0.0.4. Names and types as node_exporter has the kernel's (`node_netstat_Tcp_InSegs`,
//! untyped: some are counters, some are not).
use super::{GROUPS, camel};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn text(answer: &Value) -> String {
    let mut metrics: BTreeMap<String, Vec<(usize, u64)>> = BTreeMap::new();
    let engines = answer["engines"].as_array().into_iter().flatten();
    for (n, engine) in engines.enumerate() {
        let mut add = |group: &str, fields: &Map<String, Value>| {
            for (name, value) in fields {
                let value = value.as_u64().or(value.as_bool().map(u64::from));
                if let Some(value) = value {
                    let name = format!("hopscope_stack_{group}_{}", camel(name));
                    metrics.entry(name).or_default().push((n, value));
                }
            }
        };
        for (group, counters) in engine["counters"].as_object().into_iter().flatten() {
            counters.as_object().into_iter().for_each(|c| add(group, c));
        }
        for (group, field) in GROUPS {
            let fields = engine[*field].as_object();
            fields.into_iter().for_each(|fields| add(group, fields));
        }
    }
    let mut out = String::new();
    for (name, samples) in metrics {
        let what = name.trim_start_matches("hopscope_stack_").replace('_', "");
        let _ = writeln!(
            out,
            "# HELP {name} Statistic {what}.\n# TYPE {name} untyped"
        );
        for (engine, value) in samples {
            let _ = writeln!(out, "{name}{{engine=\"{engine}\"}} {value}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_metric_has_a_sample_of_each_engine() {
        let engine =
            |n: u64| json!({ "counters": { "Tcp": { "InSegs": n } }, "link": { "is_up": true } });
        let text = text(&json!({ "engines": [engine(2), engine(3)] }));
        let expected = "# HELP hopscope_stack_Link_IsUp Statistic LinkIsUp.\n\
             # TYPE hopscope_stack_Link_IsUp untyped\n\
             hopscope_stack_Link_IsUp{engine=\"0\"} 1\n\
             hopscope_stack_Link_IsUp{engine=\"1\"} 1\n\
             # HELP hopscope_stack_Tcp_InSegs Statistic TcpInSegs.\n\
             # TYPE hopscope_stack_Tcp_InSegs untyped\n\
             hopscope_stack_Tcp_InSegs{engine=\"0\"} 2\n\
             hopscope_stack_Tcp_InSegs{engine=\"1\"} 3\n";
        assert_eq!(text, expected);
    }
}
