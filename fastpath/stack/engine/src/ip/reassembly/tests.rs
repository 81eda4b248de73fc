use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const TIMEOUT: Ns = Ns::from_ms(30_000);

fn from(source: u32, identification: u32, offset: u16, more: bool, bytes: &[u8]) -> Fragment<'_> {
    Fragment {
        source: IpAddr::V4(Ipv4Addr::from_bits(source)),
        destination: IpAddr::V4(Ipv4Addr::LOCALHOST),
        identification,
        key_protocol: 17,
        protocol: 17,
        hop_limit: 64,
        traffic_class: 0,
        offset,
        more,
        bytes,
    }
}

fn fragment(offset: u16, more: bool, bytes: &[u8]) -> Fragment<'_> {
    from(1, 1, offset, more, bytes)
}

fn add(reassembly: &mut Reassembly, fragment: &Fragment) -> Outcome {
    reassembly.add(Ns(0), TIMEOUT, fragment).0
}

/// That all is accounted for.
fn check(reassembly: &Reassembly) {
    let partials = || reassembly.sources.values().flatten();
    assert_eq!(reassembly.packets, partials().count());
    assert_eq!(
        reassembly.bytes,
        partials().map(Partial::memory_bytes).sum::<usize>()
    );
    assert!(reassembly.packets <= MAX_PACKETS && reassembly.bytes <= MAX_BYTES);
    assert!(
        reassembly
            .sources
            .values()
            .all(|p| p.len() <= MAX_PACKETS_OF_SOURCE)
    );
    assert!(
        reassembly
            .ages
            .iter()
            .all(|a| a.len() <= 4 * MAX_PACKETS + 1)
    );
}

proptest! {
    #[test]
    fn rfc791_3_2_any_order_and_duplicates_give_the_packet(
        len in 17usize..3_000,
        cuts in prop::collection::vec(1u16..60, 1..40),
        seed: u64,
    ) {
        let packet: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        let mut pieces = Vec::new();
        let mut at = 0;
        for cut in cuts.iter().cycle() {
            let end = (at + usize::from(*cut) * 8).min(len);
            pieces.push((at as u16, end < len, &packet[at..end]));
            at = end;
            if at == len {
                break;
            }
        }
        prop_assume!(pieces.len() <= MAX_FRAGMENTS);
        // A permutation, with duplicates of all but the last to come.
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        let mut random = seed | 1;
        for i in (1..order.len()).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(i, (random % (i as u64 + 1)) as usize);
        }
        let mut reassembly = Reassembly::default();
        for (i, place) in order.iter().enumerate() {
            let (offset, more, bytes) = pieces[*place];
            let outcome = add(&mut reassembly, &fragment(offset, more, bytes));
            check(&reassembly);
            if i + 1 == order.len() {
                let Outcome::Complete(partial) = outcome else {
                    return Err(TestCaseError::fail(format!("{outcome:?}")));
                };
                prop_assert_eq!(partial.payload(), packet);
                break;
            }
            prop_assert!(matches!(outcome, Outcome::Incomplete));
            let outcome = add(&mut reassembly, &fragment(offset, more, bytes));
            prop_assert!(matches!(outcome, Outcome::Duplicate));
        }
        prop_assert_eq!(reassembly.packets, 0);
        prop_assert_eq!(reassembly.bytes, 0);
    }

    #[test]
    fn any_fragments_stay_within_bounds(
        fragments in prop::collection::vec(
            (0u32..200, 0u32..200, 0u16..40, any::<bool>(), 0usize..60, 0u64..20),
            0..600,
        ),
    ) {
        let mut reassembly = Reassembly::default();
        let bytes = [3; 64 * 8];
        for (source, identification, offset, more, len, seconds) in fragments {
            let fragment = from(source % 30, identification, offset * 8, more, &bytes[..len]);
            let _ = reassembly.add(Ns::from_ms(seconds * 1_000), TIMEOUT, &fragment);
            check(&reassembly);
        }
        while reassembly.expired(Ns::from_ms(100_000)).is_some() {}
        check(&reassembly);
        prop_assert_eq!(reassembly.packets, 0);
        prop_assert_eq!(reassembly.poll_at(), None);
    }
}

#[test]
fn rfc5722_overlaps_lose_the_packet_and_what_follows() {
    for (offset, len) in [(8, 16), (0, 8), (8, 8), (16, 8), (0, 32), (0, 24)] {
        let mut reassembly = Reassembly::default();
        let first = add(&mut reassembly, &fragment(0, true, &[1; 16]));
        assert!(matches!(first, Outcome::Incomplete));
        add(&mut reassembly, &fragment(24, true, &[1; 8]));
        let outcome = add(&mut reassembly, &fragment(offset, true, &[2; 32][..len]));
        if (offset, len) == (16, 8) {
            assert!(matches!(outcome, Outcome::Incomplete), "between both");
            continue;
        }
        assert!(matches!(outcome, Outcome::Refused), "{offset} {len}");
        // All of it again: the packet stays lost until its time is over.
        for fragment in [fragment(0, true, &[1; 16]), fragment(16, false, &[1; 8])] {
            assert!(matches!(add(&mut reassembly, &fragment), Outcome::Refused));
        }
        assert!(reassembly.expired(TIMEOUT).is_none(), "nothing to report");
        assert_eq!(reassembly.packets, 0);
        check(&reassembly);
    }
}

#[test]
fn two_ends_lose_the_packet() {
    let cases = [
        [(16, false, 8), (24, true, 8)],
        [(16, false, 8), (24, false, 8)],
        [(32, true, 8), (16, false, 8)],
    ];
    for case in cases {
        let mut reassembly = Reassembly::default();
        let outcomes = case.map(|(offset, more, len)| {
            add(&mut reassembly, &fragment(offset, more, &[1; 8][..len]))
        });
        assert!(matches!(outcomes[1], Outcome::Refused), "{case:?}");
    }
}

#[test]
fn a_source_pushes_out_only_its_own() {
    let mut reassembly = Reassembly::default();
    add(&mut reassembly, &from(2, 0, 0, true, &[1; 8]));
    let mut evicted = 0;
    for identification in 0..1_000 {
        let fragment = from(1, identification, 0, true, &[1; 8]);
        evicted += reassembly.add(Ns(0), TIMEOUT, &fragment).1;
        check(&reassembly);
    }
    assert_eq!(evicted, 1_000 - 64);
    let whole = add(&mut reassembly, &from(2, 0, 8, false, &[1; 8]));
    assert!(matches!(whole, Outcome::Complete(_)));
}

#[test]
fn many_sources_and_long_fragments_are_bounded() {
    let mut reassembly = Reassembly::default();
    let bytes = vec![1; 60_000];
    for source in 0..5_000 {
        let len = if source % 2 == 0 { 8 } else { bytes.len() };
        add(&mut reassembly, &from(source, 0, 0, true, &bytes[..len]));
        check(&reassembly);
    }
    // The newest is there still.
    let whole = add(&mut reassembly, &from(4_998, 0, 8, false, &[1; 8]));
    assert!(matches!(whole, Outcome::Complete(_)));
}

#[test]
fn rfc8200_4_5_a_first_fragment_is_reported_after_its_time() {
    let mut reassembly = Reassembly::default();
    add(&mut reassembly, &fragment(0, true, &[1; 8]));
    assert_eq!(reassembly.poll_at(), Some(TIMEOUT));
    assert!(reassembly.expired(Ns(TIMEOUT.0 - 1)).is_none());
    let partial = reassembly.expired(TIMEOUT).unwrap();
    assert_eq!(partial.first(), Some(&[1; 8][..]));
    assert_eq!(
        reassembly.memory_bytes() as usize,
        reassembly.ages[0].capacity() * size_of::<(Ns, IpAddr, u64)>()
    );
}

#[test]
fn complete_packets_leave_no_ages_behind() {
    let mut reassembly = Reassembly::default();
    for identification in 0..100_000 {
        add(&mut reassembly, &from(1, identification, 0, true, &[1; 8]));
        let whole = add(&mut reassembly, &from(1, identification, 8, false, &[1; 8]));
        assert!(matches!(whole, Outcome::Complete(_)));
    }
    check(&reassembly);
}
