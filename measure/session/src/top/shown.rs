//! What is shown of a program that is looked at.
use super::by::By;
use hopscope_report::Scale;

/// What the picture or the lines need besides the numbers.
pub struct Shown {
    pub title: String,
    pub scale: Scale,
    pub corrected: bool,
    pub by: By,
    pub raw: bool,
    pub json: bool,
}
