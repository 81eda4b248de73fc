//! An epoll server that knows nothing of it, a client that compares every byte: messages of 1 byte to
//! 128 KiB, connections that end in three ways.
use super::scene::{dir, program, splice, text};
use anyhow::{Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::counts;
use std::process::Command;

#[derive(Clone, Copy)]
pub(super) struct Way {
    listen: &'static str,
    connect: &'static str,
    /// Two network namespaces with a cable between them.
    is_across: bool,
}

const fn here(listen: &'static str, connect: &'static str) -> Way {
    Way {
        listen,
        connect,
        is_across: false,
    }
}

const fn across(address: &'static str) -> Way {
    Way {
        listen: address,
        connect: address,
        is_across: true,
    }
}

pub(super) const WAYS: [(&str, Way); 5] = [
    ("v4", here("127.0.0.1", "127.0.0.1")),
    ("v6", here("::1", "::1")),
    ("v4_at_a_v6_server", here("::", "127.0.0.1")),
    ("across_namespaces_v4", across("10.98.0.2")),
    ("across_namespaces_v6", across("fd98::2")),
];

/// The server says its port through a pipe with a name: reading it is waiting for it.
pub(super) const SERVE_AND_TEST: &str = r#"
mkfifo "$DIR/port"
$NEAR "$SERVER" "$LISTEN" "$DIR/port" & server=$!
read port < "$DIR/port"
$FAR "$TESTER" "$CONNECT" "$port" "$CONNECTIONS" "$AT_ONCE" "$SOURCES"
code=$?
kill $server
wait $server
exit $code
"#;

pub(super) fn arrive(way: Way) -> Result<()> {
    let cable = match way.is_across {
        true => Some(Cable::new("")?),
        false => None,
    };
    let into = |end| {
        cable
            .as_ref()
            .map(|cable| cable.enter(end))
            .unwrap_or_default()
    };
    let connections = counts().pick(2_000, 100_000).to_string();
    let sources = if way.connect == "127.0.0.1" { "8" } else { "1" };
    let (server, tester) = (program("server")?, program("tester")?);
    let environment = [
        ("DIR", text(dir())?),
        ("SERVER", text(&server)?),
        ("TESTER", text(&tester)?),
        ("LISTEN", way.listen),
        ("CONNECT", way.connect),
        ("CONNECTIONS", &connections),
        ("AT_ONCE", counts().pick("500", "1000")),
        ("SOURCES", sources),
        ("NEAR", &into("s")),
        ("FAR", &into("c")),
    ];
    let done = splice(&[], SERVE_AND_TEST, &environment)?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let said = done.said()?;
    // Every byte of both directions is accounted for, by whichever way it went.
    let bytes = done.count("direct_bytes")? + done.count("tcp_bytes")?;
    ensure!(
        said["bytes"].as_u64().map(|bytes| 2 * bytes) == Some(bytes)
            && done.count("connections")?.to_string() == connections
            && done.count("direct_bytes")? > bytes / 2,
        "{said} {}",
        done.summary
    );
    Ok(())
}

/// Two network namespaces with a cable between them; `hss0` in one, `hss1` in the other.
pub(super) struct Cable(String);

impl Cable {
    /// `which`: where there are several.
    pub(super) fn new(which: &str) -> Result<Cable> {
        let cable = Cable(format!("hss{}{which}", std::process::id()));
        let name = |end: &str| format!("{}{end}", cable.0);
        for end in ["c", "s"] {
            ip(&format!("netns add {}", name(end)))?;
        }
        ip(&format!(
            "link add hss0 netns {} type veth peer name hss1 netns {}",
            name("c"),
            name("s")
        ))?;
        for (end, device, host) in [("c", "hss0", 1), ("s", "hss1", 2)] {
            let end = name(end);
            ip(&format!("-n {end} addr add 10.98.0.{host}/24 dev {device}"))?;
            ip(&format!(
                "-n {end} addr add fd98::{host}/64 dev {device} nodad"
            ))?;
            ip(&format!("-n {end} link set {device} up"))?;
        }
        // Ports of connections that ended may be used again after a second, not after sixty: a full run
        // needs more than there are.
        let again = "echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse";
        let into = format!("--net=/run/netns/{}", name("c"));
        command(Command::new("nsenter").args([&into, "sh", "-c", again]))?.expect_code(0)?;
        Ok(cable)
    }

    pub(super) fn enter(&self, end: &str) -> String {
        format!("nsenter --net=/run/netns/{}", self.name(end))
    }

    /// Of the network namespace.
    pub(super) fn name(&self, end: &str) -> String {
        format!("{}{end}", self.0)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in ["c", "s"] {
            // What is not there need not be removed.
            let _ = ip(&format!("netns del {}{end}", self.0));
        }
    }
}

fn ip(words: &str) -> Result<()> {
    command(Command::new("ip").args(words.split(' ')))?.expect_code(0)?;
    Ok(())
}
