//! A case of a contract: a name, and what is asserted.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One sentence of a contract as a test. It panics where the subject breaks it.
pub struct Case<S: ?Sized> {
    name: &'static str,
    assert: fn(&S),
}

impl<S: ?Sized> Case<S> {
    pub(crate) const fn new(name: &'static str, assert: fn(&S)) -> Self {
        Self { name, assert }
    }

    /// The name, as the test that the macro makes of it has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Asserts the sentence.
    ///
    /// # Panics
    /// Where the subject breaks it, and where it cannot be tried for want of something that the subject has to bring.
    pub fn assert(&self, subject: &S) {
        (self.assert)(subject);
    }
}

impl<S: ?Sized> fmt::Debug for Case<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// Asserts the case of this name: what the tests call that a macro makes.
///
/// # Panics
/// As [`Case::assert`], and where there is no such case.
pub fn assert_case<S: ?Sized>(cases: &[Case<S>], name: &str, subject: &S) {
    match cases.iter().find(|case| case.name == name) {
        Some(case) => case.assert(subject),
        None => panic!("there is no case {name}"),
    }
}

/// The cases that the subject breaks, by name: for suites that test a suite.
#[must_use]
pub fn failures<S: ?Sized>(cases: &[Case<S>], subject: &S) -> Vec<&'static str> {
    let breaks = |case: &&Case<S>| catch_unwind(AssertUnwindSafe(|| case.assert(subject))).is_err();
    cases.iter().filter(breaks).map(Case::name).collect()
}
