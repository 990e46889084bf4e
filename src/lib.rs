//! Rejoin.
