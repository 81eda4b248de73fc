//! Sockets of two hosts, over the interfaces and without an engine.
mod binding;
mod delivery;
mod limits;
mod messages;
mod sending;
mod support;
