//! A back end that has opened what it needs keeps no capability and gets none again, and works on: with each kind
//! of port, as the user it was started by and as another.
use super::front_end::{FrontEnd, PROTOCOL_FEATURES, VERSION_1};
use super::network::{self, Place};
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_netio::{Outgoing, PacketIo, PacketOptions, PacketPort};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{User, chown};
use std::os::unix::fs::MetadataExt;

const FRAME: [u8; 100] = [0xb5; 100];

pub(super) fn run() -> Result<()> {
    network::namespace()?;
    network::cable("near", "far")?;
    let nobody = User::from_name("nobody")?.context("no user nobody")?;
    let place = Place::new()?;
    for user in [None, Some(&nobody)] {
        if let Some(user) = user {
            chown(place.path(), Some(user.uid), Some(user.gid))?;
        }
        for (port, far) in [
            (&["--tap=tap0"][..], Some("tap0")),
            (&["--tap=tap1", "--queues=2"], None),
            (&["--veth=near"], Some("far")),
            (&["--xdp=near"], Some("far")),
        ] {
            carries(&place, port, far, user).with_context(|| format!("{port:?}, {user:?}"))?;
        }
    }
    left_behind(&place)
}

fn carries(place: &Place, port: &[&str], far: Option<&str>, user: Option<&User>) -> Result<()> {
    let run_as = user.map(|user| format!("--user={}", user.name));
    let arguments = [port, &run_as.as_deref().into_iter().collect::<Vec<_>>()].concat();
    let serving = Serving::start(place, &arguments)?;
    nothing_is_kept(&serving, user)?;
    let mut front_end = FrontEnd::connect(serving.socket())?;
    front_end.start(VERSION_1 | PROTOCOL_FEATURES)?;
    let far = far.map(|far| PacketPort::open(far, PacketOptions::default()));
    let mut far = far.transpose()?;
    front_end.send(&FRAME)?;
    front_end.done(1)?;
    if let Some(far) = &mut far {
        ensure!(one(far)? == FRAME, "another frame was sent");
        front_end.take()?;
        far.send(1, &mut |slot| {
            slot[..FRAME.len()].copy_from_slice(&FRAME);
            Outgoing {
                len: FRAME.len(),
                ..Outgoing::default()
            }
        })?;
        far.flush()?;
        front_end.done(0)?;
        ensure!(
            front_end.received(0, FRAME.len())? == FRAME,
            "another frame"
        );
    }
    front_end.leave()?;
    let (socket, received) = (serving.socket().to_owned(), u64::from(far.is_some()));
    let said = serving.stop()?;
    ensure!(!socket.exists(), "the socket is left behind: {}", said.all);
    let pair = &said.summary["pairs"][0];
    ensure!(
        pair["tx"]["packets"] == 1 && pair["rx"]["packets"] == received,
        "{}",
        said.summary
    );
    Ok(())
}

fn one(far: &mut PacketPort) -> Result<Vec<u8>> {
    let mut frame = None;
    while frame.is_none() {
        let fd = far.wait_fd().context("nothing to wait for")?;
        poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::NONE)?;
        far.receive(1, &mut |came| frame = Some(came.bytes.to_vec()))?;
    }
    frame.context("no frame")
}

fn nothing_is_kept(serving: &Serving, user: Option<&User>) -> Result<()> {
    let kept = |field: &str| serving.status(field);
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        ensure!(kept(set)? == "0000000000000000", "{set}: {}", kept(set)?);
    }
    ensure!(kept("NoNewPrivs")? == "1", "new privileges");
    let (uid, gid) = user.map_or((0, 0), |user| (user.uid.as_raw(), user.gid.as_raw()));
    for (field, id) in [("Uid", uid), ("Gid", gid)] {
        ensure!(
            kept(field)? == [id; 4].map(|id| id.to_string()).join(" "),
            "{field}: {}",
            kept(field)?
        );
    }
    if user.is_some() {
        ensure!(
            kept("Groups")? == gid.to_string(),
            "groups of root: {}",
            kept("Groups")?
        );
    }
    let owner = std::fs::metadata(serving.socket())?.uid();
    ensure!(owner == uid, "the socket is {owner}'s");
    let mut control = serving.socket().as_os_str().to_owned();
    control.push(".control");
    let owner = std::fs::metadata(control)?.uid();
    ensure!(owner == uid, "the control socket is {owner}'s");
    Ok(())
}

/// In a directory that the user may not write, the socket stays, which is said; and the next one takes it over.
fn left_behind(place: &Place) -> Result<()> {
    let dir = place.join("root");
    std::fs::create_dir(&dir)?;
    let socket = dir.join("s");
    let start = || Serving::at(place, socket.clone(), &["--discard", "--user=nobody"]);
    let said = start()?.stop()?;
    ensure!(
        said.all.contains("/s is left behind") && socket.exists(),
        "{}",
        said.all
    );
    start()?.stop()?;
    // Another socket of that name is another's.
    let serving = start()?;
    std::fs::remove_file(&socket)?;
    let _other = std::os::unix::net::UnixListener::bind(&socket)?;
    let said = serving.stop()?;
    ensure!(
        !said.all.contains("/s is left behind") && socket.exists(),
        "{}",
        said.all
    );
    Ok(())
}
