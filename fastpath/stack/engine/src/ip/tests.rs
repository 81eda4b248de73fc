//! Frames into an interface, and what comes out. Answers are checked by smoltcp's parsers.
mod any;
mod configuration;
mod discovery;
mod engines;
mod errors;
mod fragments;
mod frames;
mod support;
