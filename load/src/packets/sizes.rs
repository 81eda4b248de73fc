//! How long frames are. Sizes are as RFC 2544 counts them: from the Ethernet header to the FCS,
//! which the sender does not see, so that 64 means 60 bytes in memory.
use super::sampling::Weighted;
use hopscope_openloop::random::{SplitMix64, seeded};
use std::str::FromStr;

pub const FCS_BYTES: usize = 4;

/// IMIX in its simple form, 7:4:1, for Ethernet: IP packets of 46 (padded 40), 576 and 1,500 bytes.
pub const IMIX: [(usize, u32); 3] = [(64, 7), (594, 4), (1518, 1)];

/// Sizes with FCS, and how often each comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes(pub Vec<(usize, u32)>);

impl FromStr for Sizes {
    type Err = String;

    /// `64`, `imix`, or a mix of one's own: `64:7,594:4,1518:1`.
    fn from_str(text: &str) -> Result<Sizes, String> {
        if text.eq_ignore_ascii_case("imix") {
            return Ok(Sizes(IMIX.to_vec()));
        }
        let one = |part: &str| {
            let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
            let size = size.replace('_', "").parse::<usize>().ok();
            match (size, weight.parse::<u32>().ok()) {
                (Some(size @ 64..=65_535), Some(weight @ 1..)) => Ok((size, weight)),
                _ => Err(format!(
                    "{part:?} is not a frame size: give bytes with FCS from 64 on, `imix`, or SIZE:WEIGHT,…"
                )),
            }
        };
        Ok(Sizes(text.split(',').map(one).collect::<Result<_, _>>()?))
    }
}

impl Sizes {
    /// Bytes in memory.
    pub fn lengths(&self) -> Vec<usize> {
        self.0.iter().map(|(size, _)| size - FCS_BYTES).collect()
    }

    /// For people: `64 B`, `64:7,594:4,1518:1 B`.
    pub fn describe(&self) -> String {
        let one = |(size, weight): &(usize, u32)| match self.0.len() {
            1 => size.to_string(),
            _ => format!("{size}:{weight}"),
        };
        self.0.iter().map(one).collect::<Vec<_>>().join(",") + " B"
    }
}

/// Draws an index into [`Sizes`] for each packet, independently.
#[derive(Debug, Clone)]
pub struct SizeDraw {
    weighted: Option<Weighted>,
    random: SplitMix64,
}

impl SizeDraw {
    pub fn new(sizes: &Sizes, seed: u64) -> SizeDraw {
        let weights: Vec<f64> = sizes
            .0
            .iter()
            .map(|(_, weight)| f64::from(*weight))
            .collect();
        SizeDraw {
            weighted: (weights.len() > 1).then(|| Weighted::new(&weights)),
            random: seeded(seed, "sizes"),
        }
    }

    #[inline]
    pub fn next_index(&mut self) -> usize {
        match &self.weighted {
            Some(weighted) => weighted.draw(&mut self.random) as usize,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!("imix".parse(), Ok(Sizes(IMIX.to_vec())));
        assert_eq!("1500".parse(), Ok(Sizes(vec![(1500, 1)])));
        assert_eq!("64:7,512:1".parse(), Ok(Sizes(vec![(64, 7), (512, 1)])));
        for wrong in ["", "63", "64:0", "0", "64,", "-64", "64:x", "big", "70000"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
        assert_eq!(Sizes(IMIX.to_vec()).describe(), "64:7,594:4,1518:1 B");
    }

    #[test]
    fn imix_has_its_shares() {
        let mut draw = SizeDraw::new(&Sizes(IMIX.to_vec()), 5);
        let mut counts = [0f64; 3];
        (0..120_000).for_each(|_| counts[draw.next_index()] += 1.0);
        let expected = [70_000.0, 40_000.0, 10_000.0];
        let chi: f64 = (0..3)
            .map(|i| (counts[i] - expected[i]).powi(2) / expected[i])
            .sum();
        assert!(chi < 9.21, "{chi}: {counts:?}");
    }
}
