use super::text::parse;
use super::*;
use std::collections::HashSet;

#[test]
fn text_comes_back() {
    let set = generate(1000, 7);
    assert_eq!(parse(&set.to_string()), Ok(set));
    let text = "# a comment\n\npermit 6 10.1.2.3/8 any 172.16.3.0/24 80\n";
    let parsed = parse(text).expect("one rule");
    assert_eq!(
        parsed.to_string(),
        "permit 6 10.0.0.0/8 any 172.16.3.0/24 80-80\n"
    );
}

#[test]
fn lines_that_are_no_rules_are_named() {
    for (line, reason) in [
        ("allow 6 10.0.0.0/8 any 10.0.0.0/8 any", "permit or deny"),
        ("permit tcp 10.0.0.0/8 any 10.0.0.0/8 any", "protocol"),
        ("permit 0 10.0.0.0/8 any 10.0.0.0/8 any", "protocol"),
        ("permit 6 10.0.0.0/33 any 10.0.0.0/8 any", "prefix"),
        ("permit 6 10.0.0/8 any 10.0.0.0/8 any", "prefix"),
        ("permit 6 10.0.0.0/8 9-8 10.0.0.0/8 any", "ports"),
        ("permit 6 10.0.0.0/8 any 10.0.0.0/8 65536", "ports"),
        ("permit 6 10.0.0.0/8 any 10.0.0.0/8", "six fields"),
    ] {
        let (number, why) = parse(&format!("\n{line}")).expect_err(line);
        assert!(number == 2 && why.contains(reason), "{line}: {why}");
    }
}

#[test]
fn seeds_decide_and_rules_are_distinct() {
    assert_eq!(generate(3000, 1), generate(3000, 1));
    assert_ne!(generate(1000, 1), generate(1000, 2));
    let rules = generate(3000, 1).0;
    let distinct: HashSet<&Rule> = rules.iter().collect();
    assert_eq!((rules.len(), distinct.len()), (3000, 3000));
}

#[test]
fn traffic_hits_every_rule_that_is_not_hidden() {
    for count in [1000, 3000] {
        let set = generate(count, 1);
        let hits = set.hits(1);
        for (rule, flow) in &hits.flows {
            assert_eq!(set.first_match(flow), Some(*rule));
        }
        assert_eq!(hits.flows.len() + hits.hidden.len(), count);
        assert!(
            hits.hidden.len() * 100 < count,
            "{} hidden",
            hits.hidden.len()
        );
    }
}

#[test]
fn a_rule_behind_a_wider_one_is_hidden_and_other_protocols_are_said() {
    let text = "deny any 0.0.0.0/0 any 10.0.0.0/8 any\n\
                permit 6 0.0.0.0/0 any 10.1.0.0/16 80\n\
                permit 47 0.0.0.0/0 any 11.0.0.0/8 any\n\
                permit 1 1.2.3.4/32 any 11.0.0.1/32 any\n";
    let hits = parse(text).expect("four rules").hits(1);
    assert_eq!((hits.hidden, hits.unsupported), (vec![1], vec![2]));
    let rules: Vec<usize> = hits.flows.iter().map(|(rule, _)| *rule).collect();
    assert_eq!(rules, [0, 3]);
}

/// Chi-square of the destination port classes of 3,000 rules against their shares, 99 %.
#[test]
fn classes_have_their_shares() {
    let rules = generate(3000, 5).0;
    let mut counts = [0f64; 5];
    let mut total = 0.0;
    for rule in rules
        .iter()
        .filter(|rule| matches!(rule.protocol, Some(6 | 17)))
    {
        let ports = rule.destination_ports;
        let class = match (ports.first, ports.last) {
            (0, u16::MAX) => 0,
            (1024, u16::MAX) => 1,
            (0, 1023) => 2,
            (first, last) if first < last => 3,
            _ => 4,
        };
        counts[class] += 1.0;
        total += 1.0;
    }
    let shares = [18.0, 4.0, 2.0, 14.0, 62.0];
    let chi: f64 = (0..5)
        .map(|i| (counts[i] - total * shares[i] / 100.0).powi(2) / (total * shares[i] / 100.0))
        .sum();
    assert!(chi < 13.28, "{chi}: {counts:?}");
}
