//! A switch of the test's own: data base, daemon, bridge and sockets in its directory.
use super::traffic;
use crate::demo::Network;
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::Target;
use hopscope_tests::command::run;
use hopscope_tests::requirement::find_program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Switch {
    daemon: Target,
    database: Target,
    network: Network,
    dir: PathBuf,
}

impl Switch {
    /// With both cables plugged in and `flows` programmed.
    pub(super) fn start(dir: &Path, flows: &str) -> Result<Switch> {
        let network = Network::up()?;
        for (side, address) in [("left", traffic::LEFT), ("right", traffic::RIGHT)] {
            let namespace = network.namespace(side);
            let on_side = |words: &[&str]| {
                run(Command::new("ip").args(["-n", &namespace]).args(words))?.expect_code(0)
            };
            on_side(&["addr", "add", &format!("{address}/24"), "dev", "eth0"])?;
            on_side(&["link", "set", "lo", "up"])?;
            // A cable carries checksums that nobody has filled in, unless told otherwise; and what
            // the switch reads from it is cut at the largest frame.
            let mut offloads = Command::new("ip");
            offloads
                .args(["netns", "exec", &namespace, "ethtool", "-K", "eth0"])
                .args(["tx", "off", "tso", "off", "gso", "off", "gro", "off"]);
            run(&mut offloads)?.expect_code(0)?;
        }
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        let file = dir.join("conf.db");
        let create = ["create", path(&file)?, schema];
        run(Command::new("ovsdb-tool").args(create))?.expect_code(0)?;
        let socket = format!("unix:{}", dir.join("db.sock").display());
        let mut command = Command::new("ovsdb-server");
        in_directory(&mut command, dir);
        command.arg(&file).args([
            &format!("--remote=p{socket}"),
            &format!("--unixctl={}", dir.join("db.ctl").display()),
            &format!("--log-file={}", dir.join("db.log").display()),
        ]);
        let database = Target::spawn_with_ready_file(quiet(&mut command), &dir.join("db.ctl"))?;
        vsctl(dir, &["--no-wait", "init"])?;
        let mut command = network.inside();
        in_directory(&mut command, dir);
        command
            .arg(find_program("ovs-vswitchd").context("ovs-vswitchd")?)
            .args([
                &socket,
                &format!("--unixctl={}", dir.join("vs.ctl").display()),
                &format!("--log-file={}", dir.join("vs.log").display()),
            ]);
        let daemon = Target::spawn_with_ready_file(quiet(&mut command), &dir.join("vs.ctl"))?;
        let switch = Switch {
            daemon,
            database,
            network,
            dir: dir.into(),
        };
        let bridge = "add-br br0 -- set bridge br0 datapath_type=netdev \
                      -- add-port br0 port0 -- add-port br0 port1";
        let words: Vec<&str> = bridge.split_whitespace().collect();
        vsctl(dir, &words)?;
        fs::write(dir.join("flows"), flows)?;
        switch.ofctl(&["del-flows"], &[])?;
        switch.ofctl(&["add-flows"], &[path(&dir.join("flows"))?])?;
        Ok(switch)
    }

    pub(super) fn pid(&self) -> i32 {
        self.daemon.pid()
    }

    /// As the switch itself prints them, without what changes.
    pub(super) fn flows(&self) -> Result<Vec<String>> {
        let text = self.ofctl(&["--no-stats", "dump-flows"], &[])?;
        let mut flows: Vec<String> = text.lines().map(|l| l.trim().to_owned()).collect();
        flows.sort();
        Ok(flows)
    }

    /// Packets that the one flow with exactly this match has seen.
    pub(super) fn packets(&self, flow: &str) -> Result<u64> {
        // Counters of the data path reach the flows when it is next looked through.
        self.appctl(&["revalidator/wait"])?;
        let text = self.ofctl(&["--no-names", "dump-flows"], &[flow])?;
        let counts: Vec<&str> = text
            .split([',', ' '])
            .filter_map(|word| word.strip_prefix("n_packets="))
            .collect();
        match counts[..] {
            [count] => Ok(count.parse()?),
            _ => bail!("{flow} is not one flow: {text}"),
        }
    }

    pub(super) fn exchange(&self, count: u64) -> Result<()> {
        traffic::exchange(&self.network, count)
    }

    pub(super) fn transfer(&self, bytes: u64) -> Result<()> {
        traffic::transfer(&self.network, bytes)
    }

    /// Orderly: the daemon takes the bridge down, and ends with 0, having warned of nothing.
    pub(super) fn stop(self) -> Result<()> {
        self.appctl(&["exit", "--cleanup"])?;
        let status = self.daemon.wait()?;
        ensure!(status.success(), "ovs-vswitchd: {status}");
        drop(self.database);
        let log = fs::read_to_string(self.dir.join("vs.log"))?;
        let bad = log
            .lines()
            .find(|line| ["|ERR|", "|EMER|"].iter().any(|word| line.contains(word)));
        ensure!(bad.is_none(), "{log}");
        Ok(())
    }

    fn ofctl(&self, verb: &[&str], arguments: &[&str]) -> Result<String> {
        let bridge = self.dir.join("br0.mgmt");
        let mut command = Command::new("ovs-ofctl");
        in_directory(&mut command, &self.dir);
        command.args(verb).arg(bridge).args(arguments);
        Ok(run(&mut command)?.expect_code(0)?.stdout)
    }

    fn appctl(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new("ovs-appctl");
        in_directory(&mut command, &self.dir);
        command.arg("-t").arg(self.dir.join("vs.ctl")).args(words);
        Ok(run(&mut command)?.expect_code(0)?.stdout)
    }
}

fn vsctl(dir: &Path, words: &[&str]) -> Result<()> {
    let database = format!("--db=unix:{}", dir.join("db.sock").display());
    let mut command = Command::new("ovs-vsctl");
    in_directory(&mut command, dir);
    command.args(["--timeout=60", &database]).args(words);
    run(&mut command)?.expect_code(0).map(drop)
}

/// So that it meets no other switch of the machine.
fn in_directory(command: &mut Command, dir: &Path) {
    for name in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"] {
        command.env(name, dir);
    }
}

/// What it says is in its log file.
fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stderr(Stdio::null())
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is no text")
}
