//! Trees as data, on the disk and kept, and putting one back to another.

mod basics;
mod crashes;
mod faulty;
mod forged;
mod model;
mod random;
mod world;
