//! Records as documents: nothing lost, nothing newer overwritten, nothing unreadable believed.

use proptest::prelude::*;
use session_core::codec::{Decoded, decode, encode};
use session_core::{Document, NativeId, SessionKey, SessionRecord, Timestamp};

fn key() -> SessionKey {
    SessionKey::new("issue-42", "claude").unwrap()
}

fn record(text: &Document) -> SessionRecord {
    match decode(text, &key()) {
        Decoded::Record(record) => *record,
        other => panic!("{other:?}"),
    }
}

fn sample() -> SessionRecord {
    let folder = session_core::Folder {
        path: session_core::PathText::new(std::path::Path::new("/w/demo")),
        id: None,
        repository: None,
    };
    let mut record = SessionRecord::new(key(), Timestamp::from_millis(1));
    record.binding = Some(session_core::Binding {
        native_id: NativeId::new("11111111-1111-4111-8111-111111111111"),
        phase: session_core::Phase::Confirmed,
        began_in: folder,
        home: Some(session_core::PathText::new(std::path::Path::new("/h/.agent"))),
        lives_in: None,
        agent_version: Some("2.1.332".to_owned()),
        created_at: Timestamp::from_millis(1),
        used_at: Timestamp::from_millis(2),
        counters: session_core::Counters { cost_usd: Some(0.25), usage: None },
        forked_from: None,
        poisoned: None,
        extra: serde_json::Map::new(),
    });
    record
}

#[test]
fn a_record_comes_back_as_it_was() {
    assert_eq!(record(&encode(&sample())), sample());
}

#[test]
fn fields_of_a_later_version_survive_a_round_trip() {
    let mut value: serde_json::Value = serde_json::from_slice(encode(&sample()).as_bytes()).unwrap();
    value["record"]["seed"] = serde_json::json!({ "recipe": ["a", 1] });
    value["record"]["binding"]["tier"] = serde_json::json!("gold");
    let document = Document::new(serde_json::to_vec(&value).unwrap());
    let again: serde_json::Value = serde_json::from_slice(encode(&record(&document)).as_bytes()).unwrap();
    assert_eq!(again, value);
}

#[test]
fn a_record_of_before_knows_no_rewind_and_says_so_by_nothing() {
    let mut record_of_now = sample();
    let plain: serde_json::Value = serde_json::from_slice(encode(&record_of_now).as_bytes()).unwrap();
    assert!(plain["record"].get("went_back").is_none());
    record_of_now.went_back = vec![session_core::RunId::new(uuid::Uuid::from_u128(7))];
    assert_eq!(record(&encode(&record_of_now)), record_of_now);
    let whole: serde_json::Value = serde_json::from_slice(encode(&record_of_now).as_bytes()).unwrap();
    assert_eq!(whole["format"], plain["format"]);
}

#[test]
fn a_newer_format_is_newer_whatever_it_holds() {
    for text in [
        r#"{"format":{"major":1,"minor":1},"record":{"anything":true}}"#,
        r#"{"format":{"major":2,"minor":0}}"#,
    ] {
        assert!(matches!(decode(&Document::new(text.into()), &key()), Decoded::Newer(_)), "{text}");
    }
}

#[test]
fn a_record_of_another_key_is_not_believed() {
    let other = SessionKey::new("issue-43", "claude").unwrap();
    assert!(matches!(decode(&encode(&sample()), &other), Decoded::Corrupt(_)));
}

#[test]
fn a_record_cut_anywhere_is_corrupt() {
    let whole = encode(&sample());
    for length in 0..whole.as_bytes().len() {
        let cut = Document::new(whole.as_bytes()[..length].to_vec());
        assert!(matches!(decode(&cut, &key()), Decoded::Corrupt(_)), "cut at {length}");
    }
}

#[test]
fn an_id_that_no_agent_would_take_is_still_read() {
    let mut odd = sample();
    odd.binding.as_mut().unwrap().native_id = NativeId::new("--resume");
    assert_eq!(record(&encode(&odd)), odd);
}

proptest! {
    #[test]
    fn any_bytes_have_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = decode(&Document::new(bytes), &key());
    }

    #[test]
    fn a_damaged_byte_is_never_another_record(at in 0_usize..2000, byte in any::<u8>()) {
        let mut bytes = encode(&sample()).as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        // Whatever comes out, it does not panic, and it is of the key that was asked for.
        if let Decoded::Record(record) = decode(&Document::new(bytes), &key()) {
            prop_assert_eq!(record.key, key());
        }
    }
}

/// BR-121: a time of any zone is that instant, and is written in UTC; what is no time is damage, and never 1970.
#[test]
fn a_time_is_an_instant_or_damage() {
    let with = |time: serde_json::Value| {
        let mut value: serde_json::Value = serde_json::from_slice(encode(&sample()).as_bytes()).unwrap();
        value["record"]["binding"]["used_at"] = time;
        decode(&Document::new(serde_json::to_vec(&value).unwrap()), &key())
    };
    for text in ["2026-03-01T10:00:00Z", "2026-03-01T18:00:00+08:00"] {
        let Decoded::Record(record) = with(text.into()) else { panic!("{text}") };
        assert_eq!(record.binding.unwrap().used_at.to_string(), "2026-03-01T10:00:00Z");
    }
    for none in [
        "1772359200".into(),
        1_772_359_200.into(),
        (-1).into(),
        9e18.into(),
        "yesterday".into(),
        serde_json::Value::Null,
    ] {
        assert!(matches!(with(none.clone()), Decoded::Corrupt(_)), "{none}");
    }
}
