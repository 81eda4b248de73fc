//! The stack as a whole. Each file has one side of [`Engine`].
mod calls;
mod device;
mod state;
mod told;

pub use state::Engine;

#[cfg(test)]
mod own_address_tests;
#[cfg(test)]
mod pair_tests;
#[cfg(test)]
mod tests;
