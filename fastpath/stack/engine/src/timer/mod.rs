//! When what is due: a hierarchical timing wheel (Varghese and Lauck, 1987).
mod wheel;

pub(crate) use wheel::Wheel;
