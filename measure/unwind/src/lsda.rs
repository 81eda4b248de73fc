//! Exception tables (LSDA): Itanium C++ ABI, "Exception Handling Tables", as compilers write them and unwinders read them.
mod read;
mod write;

pub use read::read;
pub use write::{BASE_FIELD, Table, apart, write};

use std::ops::Range;

/// One function's, or a part's. Addresses are those of the file.
#[derive(Debug)]
pub struct Lsda<'d> {
    /// Ascending and disjoint.
    pub call_sites: Vec<CallSite>,
    /// All records that call sites lead to, from the table's begin.
    pub actions: &'d [u8],
    pub types: Option<Types<'d>>,
}

#[derive(Debug, Clone)]
pub struct CallSite {
    pub range: Range<u64>,
    pub pad: Option<u64>,
    /// One more than the offset of the first action; zero without any.
    pub action: u64,
}

#[derive(Debug)]
pub struct Types<'d> {
    /// The values are addresses of slots that hold them.
    pub indirect: bool,
    /// From number 1 on, as addresses in the process; zero catches everything.
    pub values: Vec<u64>,
    /// Lists of exception specifications: numbers of types.
    pub filters: &'d [u8],
}

impl Lsda<'_> {
    /// What the table says of the instruction at `svma`.
    pub fn site(&self, svma: u64) -> Option<&CallSite> {
        self.call_sites.iter().find(|s| s.range.contains(&svma))
    }

    /// Keeps what lies in `range`.
    pub fn cut(&mut self, range: &Range<u64>) {
        for site in &mut self.call_sites {
            site.range.start = site.range.start.max(range.start);
            site.range.end = site.range.end.min(range.end);
        }
        self.call_sites.retain(|s| !s.range.is_empty());
    }
}
