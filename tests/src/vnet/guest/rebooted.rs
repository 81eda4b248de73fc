//! A guest that reboots again and again amid its traffic, for ten minutes, on back ends that stay: each boot carries every
//! byte, and the back ends keep as much memory and as many descriptors as after the first. Every other time the machine
//! is reset and nobody says a word to its devices.
use super::far::Far;
use super::{Guest, said, unharmed};
use crate::vnet::network::{Place, ip, namespace};
use crate::vnet::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_guest::Nic;
use serde_json::Value;
use std::time::Duration;

/// Split rings, and packed ones that leave nothing undone.
const DEVICES: [(&[&str], &[&str]); 2] = [
    (&["--tap=near0"], &[]),
    (&["--tap=near1", "--no-offload"], &["packed=on"]),
];
/// A boot, and what follows, takes some 17 seconds on an idle machine.
const REBOOTS: u32 = 40;
const WATCHDOG: Duration = Duration::from_secs(3_600);
/// Of a back end's own memory: a packet that waits, or lines of its output.
const SLACK_KIB: u64 = 512;
/// A boot that fails does not reboot, so that it is the last, and too early. The far end says when it is enough.
const BOOT: &str = "
  up 2 && carry 0 && carry 1 || exit 1
  for n in 0 1; do
    hopscope load udp rr --rate 300 --size 1000 --timeout 5s -d 1h --json 10.9.$n.1:7003 > /tmp/udp$n &
    all=\"$all $!\"
    hopscope load tcp rr --rate 50 --size 4096 -d 1h --json 10.9.$n.1:7010 > /tmp/tcp$n &
    all=\"$all $!\"
  done
  hopscope load udp rr --rate 300 --size 64 --timeout 20s -d 5s 10.9.1.1:7003 > /tmp/amid || { cat /tmp/amid; exit 1; }
  case $(nc 10.9.0.1 7004 < /dev/null) in
    BOOTS) ;;
    *[02468]) restart 2 ;;
    *[13579]) cut_off ;;
    *) exit 1 ;;
  esac
  kill -INT $all
  wait
  tail -qn 1 /tmp/udp0 /tmp/udp1 /tmp/tcp0 /tmp/tcp1";

pub(super) fn run() -> Result<()> {
    namespace()?;
    let far = Far::start(1_100_000)?;
    let _server = super::restarted::echoing()?;
    let mut guest = Guest::new()?;
    guest.0.file("/data", &far.data);
    guest.0.reboots(REBOOTS);
    let place = Place::new()?;
    let mut serving = Vec::new();
    for (n, (serve, nic)) in DEVICES.iter().enumerate() {
        let back_end = Serving::at(&place, place.join(&format!("s{n}")), serve)?;
        ip(&format!("addr add 10.9.{n}.1/24 dev near{n}"))?;
        let mut device = Nic::new(back_end.socket());
        device.properties = nic.iter().map(|word| (*word).to_owned()).collect();
        guest.nic(device)?;
        serving.push(back_end);
    }
    let boots = REBOOTS + 1;
    guest.step("boot", &BOOT.replace("BOOTS", &boots.to_string()));
    let (run, watched) = std::thread::scope(|scope| {
        let machine = scope.spawn(|| guest.run_for(WATCHDOG));
        let watched = watch(&far, &serving, boots);
        if watched.is_err() {
            // Then the next boot is the last.
            far.count_from(boots - 1);
        }
        (machine.join().expect("no panic"), watched)
    });
    watched?;
    let run = run?;
    let text = said(&run, "boot")?;
    ensure!(text.lines().count() == 4, "too little: {text}");
    for line in text.lines() {
        let load: Value = serde_json::from_str(line)?;
        // A busy guest's sockets overflow.
        let lost = if load["test"] == "udp_rr" {
            0
        } else {
            load["failed"].as_u64().context("failed")?
        };
        let right = load["corrupt"] == 0 && load["duplicate"] == 0 && lost == 0;
        ensure!(right && load["done"].as_u64() > Some(0), "{load}");
    }
    ensure!(run.boots == boots, "{} boots", run.boots);
    for back_end in serving {
        let summary = back_end.stop()?.summary;
        unharmed(&summary)?;
        ensure!(summary["connections"] == 1, "{summary}");
        for queue in ["rx", "tx"] {
            let starts = summary["pairs"][0][queue]["starts"].as_u64();
            ensure!(starts >= Some(boots.into()), "{queue}: {summary}");
        }
        println!("{summary}");
    }
    Ok(())
}

/// Looks at the back ends in the midst of each boot's traffic.
fn watch(far: &Far, serving: &[Serving], boots: u32) -> Result<()> {
    let look = || -> Result<Vec<(usize, u64)>> {
        let look = |back_end: &Serving| Ok((back_end.descriptors()?, back_end.own_kib()?));
        serving.iter().map(look).collect()
    };
    far.asks(1)?;
    let first = look()?;
    for boot in 2..=boots {
        far.asks(boot)?;
        for (n, (now, first)) in look()?.iter().zip(&first).enumerate() {
            let what = || format!("device {n}, boot {boot}: {first:?}, then {now:?}");
            ensure!(now.0 == first.0, "descriptors of {}", what());
            ensure!(now.1 <= first.1 + SLACK_KIB, "memory of {}", what());
        }
    }
    let last = look()?;
    println!("{boots} boots; descriptors and KiB: {first:?}, at last {last:?}");
    Ok(())
}
