//! Restartable sequences: the kernel aborts one when its thread is preempted, and must not be kept
//! from it by our having moved the thread elsewhere meanwhile.
use super::target::{Target, compile};
use hopscope_process::stop_one;

#[test]
fn a_sequence_is_aborted_by_a_remote_call_in_it() {
    let mut target = Target::start(&compile("restartable"), "");
    let line = target.line();
    let mut fields = line.split(' ').map(|f| u64::from_str_radix(f, 16).unwrap());
    let [first, len, abort] = [(); 3].map(|()| fields.next().unwrap());
    let pid = target.pid();
    let mut inside = 0;
    while inside < 10 {
        let mut stopped = stop_one(pid).unwrap();
        let rip = stopped.regs(pid).rip;
        if rip.wrapping_sub(first) < len {
            inside += 1;
            super::getpid(&mut stopped);
            assert_eq!(stopped.regs(pid).rip, abort);
        } else {
            super::getpid(&mut stopped);
            assert_eq!(stopped.regs(pid).rip, rip);
        }
        stopped.resume().unwrap();
    }
}
