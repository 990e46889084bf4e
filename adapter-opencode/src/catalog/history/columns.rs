//! Columns of a row: what the agent wrote there may be of any type.

use rusqlite::Row;
use rusqlite::types::ValueRef;

/// The text of a column. `None`: it is of another type.
pub(super) fn text_of(row: &Row<'_>, column: usize) -> Result<Option<String>, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    })
}

/// The bytes of a column. `None`: it has none.
pub(super) fn bytes_of<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a [u8]>, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(bytes),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    })
}

/// The number of a column. `None`: it is of another type.
#[expect(clippy::cast_precision_loss, reason = "times and counts are far below what is lost")]
pub(super) fn number_of(row: &Row<'_>, column: usize) -> Result<Option<f64>, rusqlite::Error> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    })
}

/// A number as a count.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
pub(super) fn count(number: Option<f64>) -> u64 {
    number.unwrap_or(0.0) as u64
}
