//! Counts that are added up.

/// A struct of counts, and their sums field by field: none can be left out.
#[macro_export]
macro_rules! sums {
    ($(#[$of:meta])* $vis:vis struct $counts:ident {
        $($(#[$doc:meta])* $field_vis:vis $field:ident: $number:ty,)*
    }) => {
        $(#[$of])*
        $vis struct $counts { $($(#[$doc])* $field_vis $field: $number,)* }

        impl core::ops::AddAssign for $counts {
            fn add_assign(&mut self, other: $counts) {
                $(self.$field += other.$field;)*
            }
        }
    };
}
