//! Sessions with all that is awkward about them.

use crate::session::{Dice, Truth, Writer};

/// What is awkward about a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trap {
    None,
    Noise,
    Rewound,
    Compacted,
    Moved,
    Torn,
    Blank,
    Helper,
    MetadataOnly,
    LateTitle,
    Forked,
}

pub(crate) const TRAPS: [Trap; 11] = [
    Trap::None,
    Trap::Noise,
    Trap::Rewound,
    Trap::Compacted,
    Trap::Moved,
    Trap::Torn,
    Trap::Blank,
    Trap::Helper,
    Trap::MetadataOnly,
    Trap::LateTitle,
    Trap::Forked,
];

/// A session with this trap, and the truth about it.
pub(crate) fn session(seed: u64, trap: Trap) -> (Vec<u8>, Truth) {
    let mut writer = Writer::new(Dice::new(seed));
    writer.sidechain = trap == Trap::Helper;
    writer.raw(r#"{"type":"mode","mode":"normal","sessionId":"s"}"#);
    writer.raw(
        r#"{"type":"file-history-snapshot","messageId":"x","snapshot":{"messageId":"x","timestamp":"1999"}}"#,
    );
    if trap == Trap::MetadataOnly {
        writer.title();
        return writer.finish(false, false);
    }
    if trap == Trap::Forked {
        let mut donor = Writer::new(Dice::new(seed + 1_000_000));
        donor.turn();
        donor.turn();
        writer.fork(&donor);
        writer.truth.first_prompt = donor.truth.first_prompt.clone();
        writer.adopt(&donor);
    }
    if trap == Trap::Noise {
        writer.noise();
    }
    let turns = 1 + writer.dice.below(8);
    for turn in 0..turns {
        if trap == Trap::Compacted && turn > 0 && writer.dice.one_in(2) {
            writer.compact();
        }
        if trap == Trap::Rewound && turn > 0 {
            writer.rewind();
        }
        if trap == Trap::Moved && turn == 1 {
            (writer.cwd, writer.branch) = ("/w/other tree".into(), "feat/x".into());
        }
        writer.prompt();
        for _ in 0..writer.dice.below(4) {
            writer.reply();
        }
        if trap == Trap::Blank {
            writer.raw("");
        }
        if trap == Trap::LateTitle || writer.dice.one_in(3) {
            writer.title();
        }
    }
    writer.finish(trap != Trap::Helper, trap == Trap::Torn)
}
