//! Functions that inspect their return address (dlsym …); found by `instrument::body::sensitive`.
use std::collections::HashMap;

/// What is known of one module.
#[derive(Debug, Default)]
pub struct CallerSensitive {
    /// Address of each function that ends in such a jump, and where it leads.
    pub(crate) functions: HashMap<u64, String>,
    /// What other modules define: name, and where the jump leads.
    pub(crate) elsewhere: HashMap<String, String>,
}
