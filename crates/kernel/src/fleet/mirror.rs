//! The copy of a worker's loop folder that its coordinator keeps: which files it has, and whether a
//! journal still is the one that was copied.

/// Bytes of the end of a copy by which its journal is recognised. Lines end in a checksum of their own.
pub const TAIL_BYTES: usize = 64;

/// What a journal is to the copy of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalCopy {
    /// The copy is its beginning: what stands behind that is still to be copied.
    Continues,
    /// It is shorter, or another: it gets a copy of its own.
    Other,
}

/// Compares a copy of `copied` bytes that ends in `tail` with a journal of `length` bytes, which has `there`
/// in the place of that tail.
pub fn journal_copy(copied: u64, tail: &[u8], length: u64, there: Option<&[u8]>) -> JournalCopy {
    match there {
        _ if copied == 0 => JournalCopy::Continues,
        Some(there) if copied <= length && there == tail => JournalCopy::Continues,
        _ => JournalCopy::Other,
    }
}

/// Records that tell of a run's end, or of the next one. Whoever follows a loop reads the output of a run
/// before them and no more behind them.
const ENDS_OF_RUNS: [&str; 4] = [
    "\"kind\":\"agent_ended\"",
    "\"kind\":\"iteration_interrupted\"",
    "\"kind\":\"loop_finished\"",
    "\"kind\":\"run_started\"",
];

/// How many bytes of a journal's next lines a copy may have before it has all output that was written
/// before them.
pub fn before_run_end(lines: &[u8]) -> usize {
    let ends_run = |line: &[u8]| {
        ENDS_OF_RUNS
            .iter()
            .any(|kind| line.windows(kind.len()).any(|part| part == kind.as_bytes()))
    };
    let lines = lines.split_inclusive(|byte| *byte == b'\n');
    let whole = lines.take_while(|line| line.ends_with(b"\n") && !ends_run(line));
    whole.map(<[u8]>::len).sum()
}

/// A file of a loop folder that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopiedFile {
    /// Only ever appended to; a copy that does not fit is never written over.
    Journal,
    /// Grows, and may be made anew.
    Growing,
    /// Small, and written as a whole.
    Whole,
}

/// Which file of a loop folder a name from another machine means; none where it is none that is copied.
pub fn copied_file(name: &str) -> Option<CopiedFile> {
    let words: Vec<&str> = name.split('/').collect();
    let is_plain = |word: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        (1..=80).contains(&word.len()) && !word.starts_with('.') && word.chars().all(letters)
    };
    let is_number =
        |word: &str| (1..=20).contains(&word.len()) && word.chars().all(|c| c.is_ascii_digit());
    match words.as_slice() {
        // Being written: its real name comes when it is whole.
        [.., file] if file.ends_with(".tmp") => None,
        ["journal.jsonl"] => Some(CopiedFile::Journal),
        ["prompts", file] if is_plain(file) => Some(CopiedFile::Growing),
        ["runs", run, file] if is_number(run) && is_plain(file) => Some(match file {
            cut if cut.ends_with(".cut") => CopiedFile::Whole,
            _ => CopiedFile::Growing,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_recognised_by_where_its_copy_ends() {
        use JournalCopy::{Continues, Other};
        for (copied, tail, length, there, is) in [
            (0, "", 0, None, Continues),
            (0, "", 90, None, Continues),
            (90, "abc", 90, Some("abc"), Continues),
            (90, "abc", 200, Some("abc"), Continues),
            // A power cut took lines that were copied already.
            (90, "abc", 60, None, Other),
            // And others were written in their place.
            (90, "abc", 200, Some("xyz"), Other),
            (90, "abc", 90, None, Other),
        ] {
            let found = journal_copy(copied, tail.as_bytes(), length, there.map(str::as_bytes));
            assert_eq!(found, is, "{copied} {length} {there:?}");
        }
    }

    #[test]
    fn the_end_of_a_run_waits_for_its_output() {
        let note = "{\"seq\":1,\"kind\":\"warning\"}\n";
        for kind in [
            "agent_ended",
            "iteration_interrupted",
            "loop_finished",
            "run_started",
        ] {
            let end = format!("{{\"seq\":2,\"kind\":\"{kind}\",\"x\":1}}\n");
            let lines = format!("{note}{note}{end}{note}");
            assert_eq!(before_run_end(lines.as_bytes()), 2 * note.len(), "{kind}");
        }
        assert_eq!(before_run_end(note.as_bytes()), note.len());
        assert_eq!(before_run_end(b""), 0);
        assert_eq!(before_run_end(b"{\"half\":"), 0);
    }

    #[test]
    fn only_files_of_a_loop_folder_are_copied() {
        for (name, file) in [
            ("journal.jsonl", Some(CopiedFile::Journal)),
            ("runs/0001/stdout.log", Some(CopiedFile::Growing)),
            ("runs/0001/gate-1.log", Some(CopiedFile::Growing)),
            ("runs/0001/stdout.log.cut", Some(CopiedFile::Whole)),
            ("prompts/89abcdef", Some(CopiedFile::Growing)),
            ("prompts/89abcdef.22526-1.tmp", None),
            ("runs/0001/stdout.log.cut.22526-1.tmp", None),
            ("meta.json", None),
            ("host.json", None),
            ("lock", None),
            ("runs/0001/../../meta.json", None),
            ("runs/../meta.json", None),
            ("runs/x/stdout.log", None),
            ("runs/0001/.hidden", None),
            ("runs/0001/", None),
            ("prompts/..", None),
            ("prompts/a/b", None),
            ("/etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(copied_file(name), file, "{name}");
        }
    }
}
