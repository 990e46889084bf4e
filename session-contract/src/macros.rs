//! How a list of cases becomes a table, and tests. A list is a macro that hands `module: case, …;` to another macro, which
//! is named with what it has to know.

/// A table of the cases.
#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    ([] $($module:ident: $($case:ident),*;)*) => {
        &[$($($crate::Case::new(stringify!($case), $module::$case),)*)*]
    };
}

/// A test for each case.
#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$subject:ident $cases:path] $($module:ident: $($case:ident),*;)*) => {
        mod $subject {
            $($(
                #[test]
                fn $case() {
                    $crate::assert_case($cases, stringify!($case), &*super::$subject());
                }
            )*)*
        }
    };
}
