//! Open vSwitch with its user-space data path between two network namespaces: flows, connection
//! tracking, a transfer, and packets counted one by one.
use super::measured::Everything;
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, scratch};
use switch::Switch;

mod switch;
mod traffic;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Netns, Ovs, Root};
    suite
        .case(
            "nf::ovs_switches_the_same_with_every_function_measured",
            &[Root, Netns, Fsgsbase, Ovs],
            run,
        )
        .in_turn();
}

/// What passes goes through connection tracking, so that each packet is looked up twice.
const FLOWS: &str = "\
table=0,priority=100,arp,actions=NORMAL
table=0,priority=90,udp,tp_dst=9,actions=drop
table=0,priority=80,udp,tp_dst=5007,actions=NORMAL
table=0,priority=80,udp,tp_src=5007,actions=NORMAL
table=0,priority=70,tcp,actions=ct(table=1)
table=0,priority=1,actions=drop
table=1,priority=50,ct_state=+new+trk,tcp,actions=ct(commit),NORMAL
table=1,priority=50,ct_state=+est+trk,tcp,actions=NORMAL
table=1,priority=10,actions=drop
";

/// Measured, no longer measured, and measured again until it has ended.
fn run() -> Result<()> {
    let dir = scratch();
    let switch = Switch::start(&dir, FLOWS)?;
    let programmed = switch.flows()?;
    ensure!(programmed.len() == FLOWS.lines().count(), "{programmed:?}");
    let (exchanges, bytes) = counts().pick((200, 8 << 20), (5_000, 256 << 20));
    let pass = |rounds: u64| -> Result<()> {
        switch.exchange(exchanges)?;
        switch.transfer(bytes)?;
        let now = switch.flows()?;
        ensure!(
            now == programmed,
            "the flows were {programmed:?}, now {now:?}"
        );
        for (flow, packets) in [
            ("udp,tp_dst=9", rounds * exchanges),
            ("udp,tp_dst=5007", rounds * exchanges),
            ("udp,tp_src=5007", rounds * exchanges),
        ] {
            let counted = switch.packets(flow)?;
            ensure!(counted == packets, "{flow}: {counted} packets of {packets}");
        }
        // How many segments carry the bytes is TCP's choice, but they can only hold so many.
        let tracked = switch.packets("table=1,tcp,ct_state=+est+trk")?;
        ensure!(
            tracked > rounds * bytes / 1448,
            "only {tracked} packets of tracked connections"
        );
        Ok(())
    };
    pass(1)?;
    let recording = Everything::start(&[switch.pid()], &dir.join("first.hop"))?;
    pass(2)?;
    recording.stop()?.expect_sound(20_000, 500_000)?;
    pass(3)?;
    let recording = Everything::start(&[switch.pid()], &dir.join("second.hop"))?;
    pass(4)?;
    switch.stop()?;
    recording.finished()?.expect_sound(20_000, 500_000)
}
