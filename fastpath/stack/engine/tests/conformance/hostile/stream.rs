//! The stream that the application reads is the stream that was sent, whatever order, overlap and repetition do.
use crate::support::host::config;
use crate::support::script::{Script, payload};
use proptest::prelude::*;

const LENGTH: u32 = 6_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Segments at random places of random lengths, reads between them; at the end everything once in order.
    #[test]
    fn overlapping_segments(
        segments in proptest::collection::vec((0..LENGTH, 1..1_400_u32, 0..3_000_u32), 0..60),
        sack in any::<bool>(),
    ) {
        let options = if sack { "mss 1400,sackOK" } else { "mss 1400" };
        let mut script = Script::established_with(config(), options, 32_000);
        let mut read: Vec<u8> = Vec::new();
        for (start, length, room) in segments {
            let start = 1 + start;
            let end = (start + length).min(1 + LENGTH);
            script.inject(&format!(". {start}:{end}({}) ack 1", end - start));
            let mut into = vec![0; room as usize];
            if room > 0 && let Ok(count) = script.recv(&mut into) {
                read.extend(&into[..count]);
            }
            check_answers(&mut script);
        }
        for start in (1..=LENGTH).step_by(1_000) {
            script.inject(&format!("P. {start}:{}(1000) ack 1", start + 1_000));
        }
        let mut into = vec![0; LENGTH as usize];
        while let Ok(count) = script.recv(&mut into) {
            read.extend(&into[..count]);
        }
        prop_assert_eq!(read.len(), LENGTH as usize);
        prop_assert!(read == payload(1, LENGTH));
    }
}

/// Acknowledgements and SACK blocks of what was sent, only.
fn check_answers(script: &mut Script) {
    while let Some((_, segment)) = script.take() {
        let relative = |number: u32| number.wrapping_sub(script.peer_iss);
        let ack = relative(segment.ack);
        assert!((1..=1 + LENGTH).contains(&ack), "{}", script.show(&segment));
        for (start, end) in segment.sack() {
            let (start, end) = (relative(start), relative(end));
            assert!(
                start < end && start >= 1 && end <= 1 + LENGTH,
                "{}",
                script.show(&segment)
            );
        }
    }
}
