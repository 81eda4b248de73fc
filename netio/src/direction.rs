//! Which way frames go through a port.

/// What a port is opened for. One that does not receive costs its device nothing per frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    #[default]
    Both,
    Receive,
    Send,
}
