//! The names under which the parties meet. A name of a loop, a task or a worker is one word of a subject,
//! with what has a meaning there written as `%XX`.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What must not be in one word of a subject, or in the name of a queue.
const SPECIAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'.')
    .add(b'*')
    .add(b'>')
    .add(b'%')
    .add(b'@')
    .add(b'$')
    .add(b'/')
    .add(b'\\');

/// A name as one word of a subject.
#[must_use]
pub fn word(name: &str) -> String {
    if name.is_empty() {
        return "%".to_owned();
    }
    utf8_percent_encode(name, SPECIAL).to_string()
}

/// The name that [`word`] was made of.
#[must_use]
pub fn name(word: &str) -> String {
    if word == "%" {
        return String::new();
    }
    percent_decode_str(word).decode_utf8_lossy().into_owned()
}

/// Who holds an epoch of a task.
#[must_use]
pub fn task(loop_id: &str, task: &str, epoch: u64) -> String {
    format!("task.{}.{}.{epoch}", word(loop_id), word(task))
}

/// All tasks of a task loop.
#[must_use]
pub fn tasks_of(loop_id: &str) -> String {
    format!("task.{}.>", word(loop_id))
}

/// Task loop, task and epoch of a subject that [`task`] made.
#[must_use]
pub fn parse_task(subject: &str) -> Option<(String, String, u64)> {
    let mut words = subject.strip_prefix("task.")?.split('.');
    let parsed = (
        name(words.next()?),
        name(words.next()?),
        words.next()?.parse().ok()?,
    );
    words.next().is_none().then_some(parsed)
}

/// The records of a child loop. A worker's key allows its own alone, therefore its name is part of it.
#[must_use]
pub fn events(loop_id: &str, worker: &str, child: &str) -> String {
    of_child("ev", loop_id, worker, child)
}

/// The records of all child loops of a task loop.
#[must_use]
pub fn events_of(loop_id: &str) -> String {
    format!("ev.{}.>", word(loop_id))
}

/// Commands to a child loop.
#[must_use]
pub fn control(loop_id: &str, worker: &str, child: &str) -> String {
    of_child("ctl", loop_id, worker, child)
}

/// Ranges of a child loop's logs.
#[must_use]
pub fn logs(loop_id: &str, worker: &str, child: &str) -> String {
    of_child("log", loop_id, worker, child)
}

/// Records of a child loop from a number on.
#[must_use]
pub fn journal(loop_id: &str, worker: &str, child: &str) -> String {
    of_child("jrn", loop_id, worker, child)
}

/// Commands to a worker.
#[must_use]
pub fn worker_control(worker: &str) -> String {
    format!("wctl.{}", word(worker))
}

/// What a worker says of itself.
#[must_use]
pub fn worker(name: &str) -> String {
    format!("worker.{}", word(name))
}

/// Task loop, worker and child of a subject of [`events`], [`control`], [`logs`] or [`journal`].
#[must_use]
pub fn parse_child(subject: &str) -> Option<(String, String, String)> {
    let mut words = subject.split('.').skip(1);
    let parsed = (
        name(words.next()?),
        name(words.next()?),
        name(words.next()?),
    );
    words.next().is_none().then_some(parsed)
}

/// Whether a filter (`*`: one word, a last `>`: one or more) covers a subject.
#[must_use]
pub fn matches(filter: &str, subject: &str) -> bool {
    let (mut filter, mut subject) = (filter.split('.'), subject.split('.'));
    loop {
        match (filter.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(word)) if wanted == word => {}
            _ => return false,
        }
    }
}

fn of_child(kind: &str, loop_id: &str, worker: &str, child: &str) -> String {
    format!("{kind}.{}.{}.{}", word(loop_id), word(worker), word(child))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_name_is_one_word_and_comes_back(given in ".{0,20}") {
            let word = word(&given);
            prop_assert!(!word.is_empty());
            prop_assert!(!word.contains(['.', '*', '>', ' ', '\t', '\n', '\r', '\0']));
            prop_assert_eq!(name(&word), given);
        }

        #[test]
        fn a_task_subject_is_read_back(l in ".{0,8}", t in ".{0,8}", e in any::<u64>()) {
            prop_assert_eq!(parse_task(&task(&l, &t, e)), Some((l.clone(), t, e)));
            prop_assert_eq!(parse_child(&events(&l, "w.1", "c")), Some((l, "w.1".into(), "c".into())));
        }
    }

    #[test]
    fn filters_cover_what_they_say() {
        for (filter, subject, covered) in [
            ("task.l.>", "task.l.a.1", true),
            ("task.l.>", "task.l", false),
            ("task.*.a.1", "task.l.a.1", true),
            ("task.l.a.1", "task.l.a.1", true),
            ("task.l.a", "task.l.a.1", false),
            ("ev.*.w.*", "ev.l.v.c", false),
            (">", "x", true),
        ] {
            assert_eq!(matches(filter, subject), covered, "{filter} {subject}");
        }
    }
}
