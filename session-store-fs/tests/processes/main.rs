//! The store in several processes: this program runs itself as the children that hold leases, write, run into
//! limits and are killed.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as the tests do")]

#[cfg(unix)]
mod child;
#[cfg(unix)]
mod faults;
#[cfg(unix)]
mod hammer;
#[cfg(unix)]
mod kills;
#[cfg(unix)]
mod leases;
#[cfg(unix)]
mod parent;
#[cfg(unix)]
mod sweeps;
#[cfg(unix)]
mod writers;

#[cfg(unix)]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|first| first == "child") {
        return child::act(&arguments[2], &arguments[3..]);
    }
    let trials = [
        leases::trials(),
        writers::trials(),
        kills::trials(),
        faults::trials(),
        hammer::trials(),
        sweeps::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit();
}

#[cfg(not(unix))]
fn main() {}
