//! Names of tasks, and the order in which people count them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a task; a copy costs nothing. Compared as text; people's order is [`natural_cmp`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TaskId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for TaskId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl Borrow<str> for TaskId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Deref for TaskId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for TaskId {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for TaskId {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Task ids are strings; older files hold numbers.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            Text(String),
            Number(u64),
        }
        Ok(match Raw::deserialize(deserializer)? {
            Raw::Text(text) => text.into(),
            Raw::Number(number) => number.to_string().into(),
        })
    }
}

/// Natural order: 1 < 2 < 10, 1.2 < 1.10, task-2 < task-10; numbers before words.
///
/// A total order: ids that differ never compare as equal.
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    while !left.is_empty() && !right.is_empty() {
        let (x, rest_x) = token(left);
        let (y, rest_y) = token(right);
        let order = match (x[0].is_ascii_digit(), y[0].is_ascii_digit()) {
            (true, true) => number_cmp(x, y),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => x.cmp(y),
        };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (rest_x, rest_y);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// The first run of digits, or of anything else.
fn token(bytes: &[u8]) -> (&[u8], &[u8]) {
    let digits = bytes[0].is_ascii_digit();
    let end = bytes
        .iter()
        .position(|byte| byte.is_ascii_digit() != digits);
    bytes.split_at(end.unwrap_or(bytes.len()))
}

/// Compares digits of any length by value.
fn number_cmp(a: &[u8], b: &[u8]) -> Ordering {
    let strip = |digits: &[u8]| digits.iter().take_while(|digit| **digit == b'0').count();
    let (a, b) = (&a[strip(a)..], &b[strip(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_stand_in_the_order_in_which_people_count() {
        let mut ids = [
            "10", "task-10", "1.10", "2", "1.2", "task-2", "1", "1a", "1.1", "01",
        ];
        ids.sort_by(|a, b| natural_cmp(a, b));
        assert_eq!(
            ids,
            [
                "01", "1", "1.1", "1.2", "1.10", "1a", "2", "10", "task-2", "task-10"
            ]
        );
    }

    #[test]
    fn ids_of_old_files_are_numbers() {
        let ids: Vec<TaskId> = serde_json::from_str(r#"[7, "7", "a"]"#).unwrap();
        assert_eq!(
            ids,
            [TaskId::from("7"), TaskId::from("7"), TaskId::from("a")]
        );
        assert_eq!(serde_json::to_string(&ids).unwrap(), r#"["7","7","a"]"#);
    }

    proptest! {
        #[test]
        fn natural_order_is_total(a in "[0-9a.]{0,6}", b in "[0-9a.]{0,6}", c in "[0-9a.]{0,6}") {
            prop_assert_eq!(natural_cmp(&a, &b), natural_cmp(&b, &a).reverse());
            prop_assert_eq!(natural_cmp(&a, &b) == Ordering::Equal, a == b);
            if natural_cmp(&a, &b).is_lt() && natural_cmp(&b, &c).is_lt() {
                prop_assert!(natural_cmp(&a, &c).is_lt());
            }
        }
    }
}
