//! Losses that a late or doubled segment beside them must not undo.
use super::path::{Fate, MSS, Options, Path};
use crate::Ns;

fn transfer(path: &mut Path, segments: u32) {
    path.write(u64::from(segments * MSS));
    path.run(path.now + Ns::from_ms(60_000));
    assert!(path.done());
    path.run_for(Ns::from_ms(30));
}

fn undone(path: &Path) -> u64 {
    let counters = &path.counters;
    counters.full_undo + counters.partial_undo + counters.dsack_undo + counters.loss_undo
}

/// RFC 4015, 3.4, wants all of what was retransmitted to have been needless: Linux waits until no retransmission is out (tcp_try_undo_partial).
#[test]
fn rfc4015_a_late_segment_undoes_no_loss_beside_it() {
    let options = Options {
        one_way: Ns::from_ms(10),
        ..Options::default()
    };
    // 1 is late enough to be taken for lost, 4 is lost.
    let mut path = Path::new(options, |t| match (t.segment, t.transmission) {
        (1, 0) => Fate::Late(Ns::from_ms(15)),
        (4, 0) => Fate::Lost,
        _ => Fate::Arrives,
    });
    transfer(&mut path, 10);
    assert_eq!(path.counters.sack_recovery, 1);
    assert_eq!(path.counters.tcp_retrans_segs, 2);
    assert_eq!(undone(&path), 0, "{:?}", path.counters);
    assert!(path.sender.window.ssthresh() < 10 * MSS);
}

/// RFC 3708, 4, looks for a DSACK of each retransmission: one of something else says that the network duplicates.
#[test]
fn rfc3708_a_duplicate_of_the_network_undoes_no_loss() {
    for timestamps in [true, false] {
        let mut options = Options::default();
        options.config.timestamps = timestamps;
        let mut path = Path::new(options, |t| match (t.segment, t.transmission) {
            (1, 0) => Fate::Lost,
            (8, 0) => Fate::Twice,
            _ => Fate::Arrives,
        });
        transfer(&mut path, 10);
        assert_eq!(path.counters.sack_recovery, 1);
        assert_eq!(path.counters.dsack_recv + path.counters.dsack_ofo_recv, 1);
        assert_eq!(undone(&path), 0, "{:?}", path.counters);
        assert!(path.sender.window.ssthresh() < 10 * MSS);
    }
}
