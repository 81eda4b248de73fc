//! Which flow each packet belongs to: round robin or by Zipf's law, with as many packets of a flow
//! back to back as the spatial locality factor says.
use super::sampling::Weighted;
use hopscope_openloop::random::{SplitMix64, seeded};

/// The last packets of every so many, in which flows come in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scatter {
    pub last: u32,
    pub of: u32,
}

#[derive(Debug, Clone)]
pub struct FlowOrder {
    flows: u32,
    /// Packets of a flow that follow each other. 1: ABCABC, 2: AABBCC.
    locality: u32,
    zipf: Option<Weighted>,
    random: SplitMix64,
    current: u32,
    /// Of the current group; 0: a new flow is due.
    left: u32,
    started: bool,
    scatter: Option<Scatter>,
    /// Of `scatter.of` packets, and the flow of the last scattered one.
    number: u32,
    scattered: u32,
}

impl FlowOrder {
    /// `zipf`: flow number k (from 1) is chosen with a probability in proportion to k^−s; `None`
    /// takes the flows in turn.
    pub fn new(flows: u32, locality: u32, zipf: Option<f64>, seed: u64) -> FlowOrder {
        let weights = |s: f64| -> Vec<f64> { (1..=flows).map(|k| f64::from(k).powf(-s)).collect() };
        FlowOrder {
            flows,
            locality,
            zipf: zipf.map(|s| Weighted::new(&weights(s))),
            random: seeded(seed, "flows"),
            current: 0,
            left: 0,
            started: false,
            scatter: None,
            number: 0,
            scattered: flows - 1,
        }
    }

    /// What is scattered leaves the order of the others as it is.
    pub fn scattered(self, scatter: Option<Scatter>) -> FlowOrder {
        FlowOrder { scatter, ..self }
    }

    #[inline]
    pub fn next_flow(&mut self) -> u32 {
        if let Some(Scatter { last, of }) = self.scatter {
            let number = self.number;
            self.number = (number + 1) % of;
            if number >= of - last {
                self.scattered = (self.scattered + 1) % self.flows;
                return self.scattered;
            }
        }
        if self.left == 0 {
            self.left = self.locality;
            self.current = match &self.zipf {
                Some(zipf) => zipf.draw(&mut self.random),
                None if !self.started || self.current + 1 == self.flows => 0,
                None => self.current + 1,
            };
            self.started = true;
        }
        self.left -= 1;
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(flows: u32, locality: u32, count: usize) -> String {
        let mut order = FlowOrder::new(flows, locality, None, 1);
        (0..count)
            .map(|_| (b'A' + order.next_flow() as u8) as char)
            .collect()
    }

    #[test]
    fn locality_as_the_specification_writes_it() {
        assert_eq!(letters(3, 1, 9), "ABCABCABC");
        assert_eq!(letters(3, 2, 12), "AABBCCAABBCC");
        assert_eq!(letters(2, 3, 8), "AAABBBAA");
        assert_eq!(letters(1, 1, 3), "AAA");
    }

    #[test]
    fn scattered_packets_come_in_turn_and_the_others_go_on() {
        let scatter = Some(Scatter { last: 4, of: 10 });
        let mut order = FlowOrder::new(3, 4, None, 1).scattered(scatter);
        let flows: String = (0..30)
            .map(|_| (b'A' + order.next_flow() as u8) as char)
            .collect();
        assert_eq!(flows, "AAAABBABCABBCCCCBCABAAAABBCABC");
    }

    /// Chi-square of 200,000 draws over 50 flows against k^-1.1, 49 degrees of freedom, 99 %.
    #[test]
    fn zipf_sizes_follow_the_law() {
        for seed in 1..=3 {
            let mut order = FlowOrder::new(50, 1, Some(1.1), seed);
            let mut counts = [0f64; 50];
            let draws = 200_000;
            (0..draws).for_each(|_| counts[order.next_flow() as usize] += 1.0);
            let weight = |k: usize| ((k + 1) as f64).powf(-1.1);
            let total: f64 = (0..50).map(weight).sum();
            let chi: f64 = (0..50)
                .map(|k| {
                    let expected = f64::from(draws) * weight(k) / total;
                    (counts[k] - expected).powi(2) / expected
                })
                .sum();
            assert!(chi < 74.9, "seed {seed}: {chi}");
        }
    }

    #[test]
    fn locality_holds_for_drawn_flows() {
        let mut order = FlowOrder::new(1000, 4, Some(1.0), 9);
        let drawn: Vec<u32> = (0..4000).map(|_| order.next_flow()).collect();
        assert!(
            drawn
                .chunks(4)
                .all(|group| group.iter().all(|flow| *flow == group[0]))
        );
        let changes = drawn.chunks(4).map(|group| group[0]);
        let distinct: std::collections::BTreeSet<u32> = changes.collect();
        assert!(distinct.len() > 100, "{}", distinct.len());
    }
}
