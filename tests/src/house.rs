//! Rules of the house: who may depend on whom, where unsafe code may be, what is linked.
use hopscope_tests::Suite;

mod dependencies;
mod fence;
mod imports;
mod ldd;
mod licences;
mod names;
mod packaged;
mod places;
mod readme;
mod runner_itself;
mod shards;

pub(crate) fn register(suite: &mut Suite) {
    dependencies::register(suite);
    fence::register(suite);
    imports::register(suite);
    ldd::register(suite);
    licences::register(suite);
    names::register(suite);
    packaged::register(suite);
    places::register(suite);
    readme::register(suite);
    runner_itself::register(suite);
    shards::register(suite);
}
