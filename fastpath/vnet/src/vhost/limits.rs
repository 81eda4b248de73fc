//! How long a message may be.

/// As many as a message without `CONFIGURE_MEM_SLOTS` can have.
pub(super) const REGIONS_MAX: u32 = 8;
/// The longest is a table of eight regions.
pub(super) const PAYLOAD_MAX: u32 = 8 + REGIONS_MAX * 32;
