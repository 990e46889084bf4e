//! Trees as data, on the disk and kept, and putting one back to another.

mod basics;
mod crashes;
mod faulty;
mod forged;
mod model;
mod platter;
mod power;
mod random;
mod world;
