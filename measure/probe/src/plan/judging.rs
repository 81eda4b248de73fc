//! One function, in the module that it is in: whether it can be measured, and how calls are led into its copy.
use super::accept;
use super::inlined::ByFunction;
use super::interposed::{self, Led, Method, Slots};
use super::process::{Opened, Seen};
use crate::instrument::body::unit::{Piece, Unit};
use crate::instrument::body::verdict::ProcessTraits;
use crate::instrument::body::{NoSlot, Refusal};
use crate::live::asked::Asked;
use crate::locate::pattern::Pattern;
use crate::locate::{Function, Image, MappedModule, basename};
use hopscope_event::table::ModuleIx;
use hopscope_process::AttachError;
use std::borrow::Cow;
use std::sync::Arc;

/// A function as it was decoded.
type Decoded<'i> = (Unit, Vec<Piece<'i>>);
pub(super) type FoundSlots = Result<Slots, AttachError>;

/// The module that functions are in, in its process.
pub(super) struct Home<'a> {
    pub(super) module: &'a MappedModule,
    pub(super) image: &'a Arc<Image>,
    pub(super) ix: ModuleIx,
    pub(super) base: &'a str,
    pub(super) path: Cow<'a, str>,
    pub(super) within: &'a ByFunction,
    pub(super) process: ProcessTraits<'a>,
    /// Where unwinders ask for tables, if they can be answered.
    pub(super) asked: Option<&'a Arc<[Asked]>>,
    pub(super) walked: bool,
}

impl<'a> Home<'a> {
    pub(super) fn of(
        seen: &'a Seen,
        (module, image, ix): &'a Opened<'a>,
        within: &'a ByFunction,
        process: ProcessTraits<'a>,
    ) -> Home<'a> {
        Home {
            module,
            image,
            ix: *ix,
            base: basename(&module.path),
            path: module.path.to_string_lossy(),
            within,
            process,
            asked: seen.asked.as_ref().ok(),
            walked: seen.walked,
        }
    }
}

/// Whether a function can be measured, and how; `callers`: only what these modules call.
pub(super) fn judged<'i, 's>(
    home: &Home<'i>,
    function: &Function,
    (method, callers): (Method, &[&Pattern]),
    slots: &impl Fn() -> &'s FoundSlots,
) -> Result<(Decoded<'i>, Option<Led>), Refusal> {
    let address = function.svma.wrapping_add(home.module.bias);
    let judge = |entry_stays| {
        let process = ProcessTraits {
            entry_stays,
            ..home.process
        };
        accept(home.module, home.image, function, process)
    };
    let led = || match slots() {
        Ok(slots) => slots.to(address, callers),
        Err(why) => Err(NoSlot::Unknown(why.to_string().into())),
    };
    let method = (method, !callers.is_empty());
    interposed::choose(method, || judge(false), || judge(true), led)
}
