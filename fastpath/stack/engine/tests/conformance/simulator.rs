//! A seeded network between two engines.
mod bulk;
mod goodput;
mod network;
mod path;
mod random;
mod segmentation;
