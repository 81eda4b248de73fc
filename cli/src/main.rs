//! `hopscope`: see where every packet's time goes. This file is a table of contents.
#![forbid(unsafe_code)]
fn main() {}
