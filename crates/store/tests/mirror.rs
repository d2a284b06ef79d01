//! The copy of a loop folder: byte for byte, from wherever it stands.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;

use descartes_store::layout::{LoopDir, StateRoot};
use descartes_store::mirror::{CopyError, FolderCopy, FolderNews, FolderPiece, FolderSource};

const ALL: u64 = 1 << 30;

struct Folders {
    _temp: tempfile::TempDir,
    source: LoopDir,
    copy: LoopDir,
}

fn folders() -> Folders {
    let temp = tempfile::tempdir().unwrap();
    let dir = |name: &str| {
        let root = StateRoot::at(temp.path().join(name));
        root.loop_dir("loop").unwrap()
    };
    let (source, copy) = (dir("there"), dir("here"));
    fs::create_dir_all(source.run(1).path()).unwrap();
    Folders {
        source,
        copy,
        _temp: temp,
    }
}

fn append(dir: &LoopDir, file: &str, text: &str) {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    let path = dir.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = options.append(true).create(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Copies until nothing is new; how many pieces that took.
fn catch_up(folders: &Folders, most: u64) -> usize {
    let source = FolderSource::new(folders.source.clone());
    let mut copy = FolderCopy::open(folders.copy.clone(), ALL).unwrap();
    let mut taken = 0;
    loop {
        let FolderNews::Pieces(pieces) = source.news(copy.end(), most).unwrap() else {
            panic!("another journal");
        };
        if pieces.is_empty() {
            return taken;
        }
        for piece in &pieces {
            copy.take(piece).unwrap();
            taken += 1;
        }
    }
}

fn same(folders: &Folders, file: &str) {
    let read = |dir: &LoopDir| fs::read(dir.path().join(file)).unwrap();
    assert_eq!(read(&folders.copy), read(&folders.source), "{file}");
}

#[test]
fn a_folder_is_copied_in_pieces_and_goes_on_where_it_was() {
    let folders = folders();
    append(
        &folders.source,
        "journal.jsonl",
        "{\"seq\":0}\n{\"seq\":1}\n",
    );
    append(&folders.source, "runs/0001/stdout.log", "hello ");
    append(&folders.source, "prompts/abc", "do it");
    append(&folders.source, "meta.json", "theirs");
    assert!(catch_up(&folders, 4) > 5);
    for file in ["journal.jsonl", "runs/0001/stdout.log", "prompts/abc"] {
        same(&folders, file);
    }
    assert!(
        !folders.copy.meta().exists(),
        "what a loop is found by is our own"
    );
    // Another process goes on with it.
    append(&folders.source, "journal.jsonl", "{\"seq\":2}\n");
    append(&folders.source, "runs/0001/stdout.log", "world");
    assert_eq!(catch_up(&folders, ALL), 2);
    same(&folders, "journal.jsonl");
    same(&folders, "runs/0001/stdout.log");
    assert_eq!(catch_up(&folders, ALL), 0);
}

#[test]
fn half_a_line_is_not_copied_and_what_was_cut_off_is_noticed() {
    let folders = folders();
    append(
        &folders.source,
        "journal.jsonl",
        "{\"seq\":0}\n{\"seq\":1}\n{\"se",
    );
    catch_up(&folders, ALL);
    let copied = fs::read_to_string(folders.copy.journal()).unwrap();
    assert_eq!(copied, "{\"seq\":0}\n{\"seq\":1}\n");
    // The half line is taken out and another written in its place.
    let journal = folders.source.journal();
    fs::write(&journal, "{\"seq\":0}\n{\"seq\":1}\n{\"other\":2}\n").unwrap();
    catch_up(&folders, ALL);
    same(&folders, "journal.jsonl");
    let source = FolderSource::new(folders.source.clone());
    let copy = FolderCopy::open(folders.copy.clone(), ALL).unwrap();
    for other in [
        "{\"seq\":0}\n",
        "{\"seq\":0}\n{\"seq\":1}\n{\"third\":2}\n{\"seq\":3}\n",
    ] {
        fs::write(&journal, other).unwrap();
        let news = source.news(copy.end(), ALL).unwrap();
        assert_eq!(news, FolderNews::OtherJournal, "{other}");
    }
}

#[test]
fn logs_that_are_made_anew_or_too_long_leave_the_copy_whole() {
    let folders = folders();
    append(&folders.source, "journal.jsonl", "{\"seq\":0}\n");
    append(
        &folders.source,
        "runs/0001/stdout.log",
        "a long first output",
    );
    append(
        &folders.source,
        "runs/0001/stdout.log.cut",
        "{\"dropped\":[1]}",
    );
    catch_up(&folders, ALL);
    let write = |file: &str, text: &str| fs::write(folders.source.path().join(file), text).unwrap();
    write("runs/0001/stdout.log", "short");
    // As long as before.
    write("runs/0001/stdout.log.cut", "{\"dropped\":[2]}");
    catch_up(&folders, ALL);
    same(&folders, "runs/0001/stdout.log");
    same(&folders, "runs/0001/stdout.log.cut");
    let mut copy = FolderCopy::open(folders.copy.clone(), 10).unwrap();
    let piece = FolderPiece {
        file: "runs/0001/stderr.log".to_owned(),
        offset: 0,
        bytes: b"more than there is room for".to_vec(),
    };
    copy.take(&piece).unwrap();
    assert!(!folders.copy.run(1).stderr().exists());
    let unfit = |file: &str, offset| FolderPiece {
        file: file.to_owned(),
        offset,
        bytes: b"x".to_vec(),
    };
    for piece in [
        unfit("journal.jsonl", 0),
        unfit("runs/0001/stdout.log", 6),
        unfit("../elsewhere", 0),
        unfit("lock", 0),
    ] {
        let refused = copy.take(&piece).unwrap_err();
        assert!(matches!(refused, CopyError::Unfit(_)), "{piece:?}");
    }
    same(&folders, "journal.jsonl");
}
