//! The terminal: a full screen while it lives, as it was when it ends. It runs in a thread of its
//! own, so that a terminal that takes nothing (Ctrl-S, a slow line) never keeps the recorder waiting.
use super::keys::{Act, Keys};
use super::live::Snapshot;
use super::save::save;
use super::shown::Shown;
use super::view::{HISTORY, View};
use crate::error::in_one_line;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Between two looks at the keyboard.
const TURN: Duration = Duration::from_millis(40);

/// Puts the terminal back however its thread ends.
struct Screen(ratatui::DefaultTerminal);

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

struct State {
    keys: Keys,
    history: Vec<VecDeque<f64>>,
    /// What is drawn; stays while paused.
    snapshot: Snapshot,
    latest: Snapshot,
    message: String,
}

impl State {
    fn take(&mut self, snapshot: Snapshot) {
        self.history.resize(snapshot.now.len(), VecDeque::new());
        for (past, now) in self.history.iter_mut().zip(&snapshot.now) {
            past.push_back(now.calls as f64 / snapshot.span_s.max(1e-9));
            if past.len() > HISTORY {
                past.pop_front();
            }
        }
        self.latest = snapshot;
    }
}

/// Draws what comes until the sender is gone; sets `stop` when the user wants to leave.
pub fn run(shown: &Shown, snapshots: &Receiver<Snapshot>, stop: &AtomicBool) -> io::Result<()> {
    let mut screen = Screen(ratatui::try_init()?);
    let mut state = State {
        keys: Keys::new(shown.by),
        history: Vec::new(),
        snapshot: Snapshot::default(),
        latest: Snapshot::default(),
        message: "measuring".to_owned(),
    };
    let mut dirty = true;
    loop {
        match snapshots.recv_timeout(TURN) {
            Ok(snapshot) => {
                if state.message == "measuring" {
                    state.message.clear();
                }
                state.take(snapshot);
                dirty |= !state.keys.paused;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        while event::poll(Duration::ZERO)? {
            let what = event::read()?;
            dirty = true;
            if let Event::Key(key) = what
                && key.kind != KeyEventKind::Release
            {
                match state.keys.press(key) {
                    Act::Nothing => {}
                    Act::Quit => {
                        state.message = "detaching".to_owned();
                        stop.store(true, Ordering::Relaxed);
                    }
                    Act::Save => state.message = saved(shown, &state),
                }
            }
        }
        if dirty {
            if !state.keys.paused {
                state.snapshot = state.latest.clone();
            }
            draw(&mut screen, shown, &state)?;
            dirty = false;
        }
    }
}

fn saved(shown: &Shown, state: &State) -> String {
    // While paused what is seen is meant.
    let snapshot = if state.keys.paused {
        &state.snapshot
    } else {
        &state.latest
    };
    match save(snapshot, &shown.scale, shown.corrected) {
        Ok(path) => format!("saved to {}", path.display()),
        Err(error) => format!("not saved: {}", in_one_line(&error)),
    }
}

fn draw(screen: &mut Screen, shown: &Shown, state: &State) -> io::Result<()> {
    let view = View {
        title: &shown.title,
        scale: shown.scale,
        corrected: shown.corrected,
        snapshot: &state.snapshot,
        history: &state.history,
        keys: &state.keys,
        message: &state.message,
    };
    screen.0.draw(|frame| view.draw(frame)).map(drop)
}
