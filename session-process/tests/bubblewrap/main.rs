//! What `bwrap` keeps from a command, tried from inside. Without `bwrap`, or the right to make namespaces, it is ignored, and
//! said to be.
#![cfg_attr(target_os = "linux", expect(clippy::unwrap_used, reason = "a test that cannot go on has failed"))]

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() {
    let name = stringify!(nothing_inside_undoes_a_mount);
    let trial = libtest_mimic::Trial::test(name, || {
        linux::nothing_inside_undoes_a_mount();
        Ok(())
    });
    let trials = vec![trial.with_ignored_flag(!linux::works())];
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit();
}

#[cfg(not(target_os = "linux"))]
fn main() {}
