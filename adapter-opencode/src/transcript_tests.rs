use super::*;

#[test]
fn an_id_begins_with_ses_and_is_plain() {
    let longest = format!("ses_{}", "x".repeat(124));
    for good in ["ses_dd81de92cffexXdIb7njL1k5sY", "ses_issue-42", "sesfoo", "ses_", &longest] {
        assert!(is_session_id(good), "{good}");
    }
    for bad in
        ["", "ses", "Ses_1", "msg_1", "ses_1/2", "ses_1.db", "ses_\u{e9}", "ses 1", &format!("{longest}x")]
    {
        assert!(!is_session_id(bad), "{bad:?}");
    }
}

#[test]
fn a_new_id_is_one() {
    let id = new_id("0189f7ea-ae2c-7809-8aeb-b819cf5e9e7f");
    assert_eq!(id.as_str(), "ses_0189f7eaae2c78098aebb819cf5e9e7f");
    assert!(is_session_id(id.as_str()));
}
