use super::*;

const MSS: u32 = 1000;

fn window(congestion: Congestion) -> Window {
    Window::new(congestion, false, MSS, 10, Seq(0))
}

fn ack(window: &mut Window, bytes: u32) {
    let acked = Acked {
        bytes,
        una: Seq(0),
        nxt: Seq(0),
        rtt: None,
        srtt: Ns::from_ms(1),
    };
    window.grow(Ns::from_ms(1), &acked, &mut Counters::default());
}

#[test]
fn rfc6928_initial_window() {
    assert_eq!(window(Congestion::Cubic).cwnd(), 10 * MSS);
}

#[test]
fn rfc5681_3_1_slow_start_doubles() {
    let mut window = window(Congestion::NewReno);
    for _ in 0..5 {
        ack(&mut window, 2 * MSS);
    }
    assert_eq!(window.cwnd(), 20 * MSS);
}

#[test]
fn rfc3465_2_1_congestion_avoidance_is_a_segment_each_window_however_it_is_divided() {
    for division in [1, 10, 1000] {
        let mut window = window(Congestion::NewReno);
        window.set_ssthresh(10 * MSS);
        for _ in 0..10 * MSS / division {
            ack(&mut window, division);
        }
        assert_eq!(window.cwnd(), 11 * MSS, "{division}");
    }
}

#[test]
fn rfc5681_3_1_equation_4() {
    let mut window = window(Congestion::NewReno);
    window.congestion();
    assert_eq!(window.ssthresh(), 5 * MSS);
    window.set_cwnd(3 * MSS);
    window.congestion();
    assert_eq!(window.ssthresh(), 2 * MSS);
}

#[test]
fn rfc9438_4_6_beta() {
    let mut window = window(Congestion::Cubic);
    window.congestion();
    assert_eq!(window.ssthresh(), 7 * MSS);
}

#[test]
fn rfc4015_congestion_that_was_none_is_taken_back() {
    let mut window = window(Congestion::Cubic);
    let before = window.congestion();
    window.set_cwnd(7 * MSS);
    window.restore(&before);
    assert_eq!((window.cwnd(), window.ssthresh()), (10 * MSS, u32::MAX));
}

#[test]
fn rfc3465_2_3_slow_start_ends_at_ssthresh() {
    let mut window = window(Congestion::NewReno);
    window.set_ssthresh(11 * MSS);
    ack(&mut window, 5 * MSS);
    assert_eq!(window.cwnd(), 11 * MSS);
}

#[test]
fn rfc1191_6_4_windows_keep_their_segments() {
    let mut window = window(Congestion::Cubic);
    window.set_mss(500);
    assert_eq!((window.cwnd(), window.initial()), (5_000, 5_000));
    window.set_mss(1_500);
    assert_eq!((window.cwnd(), window.ssthresh()), (15_000, u32::MAX));
}
