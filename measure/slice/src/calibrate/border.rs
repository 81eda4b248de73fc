//! What lies between a program and the kernel where nothing lies: a clock read in the program, and the
//! stamp of the system call that follows, or that went before.
use super::constant::constant;
use super::traffic::{Loopback, Outside};
use super::{CalibrateError, PACKETS, records};
use crate::programs::{Choose, Slicer};
use hopscope_event::slice::{Constant, Point, SliceRecord};

/// `None`: there is no stamp there, or too few packets came back.
pub(super) struct Borders {
    pub out: Option<Constant>,
    pub r#in: Option<Constant>,
}

pub(super) fn borders(slicer: &mut Slicer, traffic: &Loopback) -> Result<Borders, CalibrateError> {
    let points = slicer.points();
    let [out, back] = [Point::TxSyscall, Point::RxReturn].map(|point| points.contains(&point));
    if !out && !back {
        return Ok(Borders {
            out: None,
            r#in: None,
        });
    }
    let min_latency = slicer.options().min_latency_ns;
    slicer.set_min_latency(0)?;
    slicer.set_own(traffic.netns())?;
    slicer.set_choose(Choose::Own)?;
    let mut ring = slicer.drain()?;
    slicer.start()?;
    ring.take_all()?;
    let seen = traffic.seen_from_outside(4 * PACKETS)?;
    let records = records(&mut ring)?;
    slicer.detach();
    slicer.set_min_latency(min_latency)?;
    slicer.set_choose(Choose::Asked)?;
    let (mut to, mut from) = (Vec::new(), Vec::new());
    for record in &records {
        let Some(outside) = around(&seen, record) else {
            continue;
        };
        to.extend(at(record, Point::TxSyscall).map(|ns| ns.abs_diff(outside.before_ns) as u32));
        from.extend(at(record, Point::RxReturn).map(|ns| outside.after_ns.abs_diff(ns) as u32));
    }
    // Bare words for hooks see no reader of UDP: what comes to no end is not measured.
    let measured = |samples: Vec<u32>| match samples.len() as u32 {
        seen if seen < 2 * PACKETS => None,
        _ => Some(constant(samples)),
    };
    Ok(Borders {
        out: measured(to),
        r#in: measured(from),
    })
}

fn at(record: &SliceRecord, point: Point) -> Option<u64> {
    let word = record.stamp(point)?;
    Some(record.t0_ns + u64::from(word.delta()))
}

/// The packet whose two readings hold every stamp of the record.
fn around(seen: &[Outside], record: &SliceRecord) -> Option<Outside> {
    let after = seen.partition_point(|outside| outside.before_ns <= record.t0_ns);
    let outside = *seen.get(after.checked_sub(1)?)?;
    let end = record.t0_ns + u64::from(record.total());
    (end <= outside.after_ns).then_some(outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::slice::sample;

    #[test]
    fn a_record_is_of_the_packet_that_was_under_way() {
        let record = sample::over_veth(1);
        let (t0, end) = (record.t0_ns, record.t0_ns + u64::from(record.total()));
        let outside = |before_ns, after_ns| Outside {
            before_ns,
            after_ns,
        };
        let seen = [
            outside(t0 - 900, t0 - 500),
            outside(t0 - 150, end + 170),
            outside(end + 300, end + 900),
        ];
        let found = around(&seen, &record).unwrap();
        assert_eq!((found.before_ns, found.after_ns), (t0 - 150, end + 170));
        // Its call returned before the record says so: of another packet.
        assert!(around(&[outside(t0 - 150, end - 1)], &record).is_none());
        assert!(around(&seen[2..], &record).is_none());
    }
}
