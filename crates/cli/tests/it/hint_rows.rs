//! Rows of tables: what is typed in which state, which command that suggests, and what comes of it, typed as it
//! stands there.

use std::fmt::Write;
use std::process::Command;

use descartes_testkit::World;
use descartes_testkit::world::{Finished, bins};

/// What ends a command in the middle of a text; the same as in `src/args/hints.rs`, and a tag of a page.
const ENDS: [&str; 11] = [
    "`", ";", "\n", ")", ", ", " (", ": ", " && ", ". ", "</", "\\n",
];

/// One suggestion.
pub struct Row {
    /// A line for a shell; it prints the suggestion.
    typed: &'static str,
    /// As the suggestion stands in `hints.txt`.
    hint: &'static str,
    /// Words that a person fills in, and with what.
    filled: Vec<(&'static str, &'static str)>,
    /// What is glued to its end.
    behind: &'static str,
    /// What somebody does before it is typed.
    before: &'static str,
    event: Option<fn(&World)>,
    /// The folder below the world where both are typed.
    place: &'static str,
    code: i32,
    says: &'static str,
}

/// Typing this line suggests this command, and that one ends well.
pub fn row(typed: &'static str, hint: &'static str) -> Row {
    Row {
        typed,
        hint,
        filled: Vec::new(),
        behind: "",
        before: "",
        event: None,
        place: "project",
        code: 0,
        says: "",
    }
}

impl Row {
    /// A word that a person fills in.
    pub fn fill(mut self, word: &'static str, with: &'static str) -> Self {
        self.filled.push((word, with));
        self
    }

    /// Words that a person adds.
    pub fn behind(mut self, words: &'static str) -> Self {
        self.behind = words;
        self
    }

    /// A line that is typed between the two.
    pub fn before(mut self, line: &'static str) -> Self {
        self.before = line;
        self
    }

    /// What happens between the two.
    pub fn once(mut self, event: fn(&World)) -> Self {
        self.event = Some(event);
        self
    }

    /// Both are typed there.
    pub fn place(mut self, folder: &'static str) -> Self {
        self.place = folder;
        self
    }

    /// The suggestion ends with this code.
    pub fn ends(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// And says this.
    pub fn says(mut self, words: &'static str) -> Self {
        self.says = words;
        self
    }

    fn fails_in(&self, world: &World) -> Option<String> {
        let told = typed(world, self.place, self.typed);
        let said = all_of(&told);
        let Some(found) = suggestion(&said, self.hint) else {
            return Some(format!("it is not suggested\n{told}"));
        };
        if let Some(event) = self.event {
            event(world);
        }
        let mut line = found.clone();
        for (word, with) in &self.filled {
            line = line.replace(word, with);
        }
        if !self.before.is_empty() {
            line = format!("{}\n{line}", self.before);
        }
        let run = typed(world, self.place, &format!("{line}{}", self.behind));
        let out = all_of(&run);
        let repeats = run.code() != Some(0) && suggestion(&out, self.hint) == Some(found);
        let wrong = match () {
            () if run.code() != Some(self.code) => "it ends otherwise",
            () if !out.contains(self.says) => "it says something else",
            () if repeats || (!run.stderr.is_empty() && run.stderr == told.stderr) => {
                "it repeats itself"
            }
            () => return None,
        };
        Some(format!("{wrong}\n{told}\ntyped: {line}\n{run}"))
    }
}

/// Types each of them in a world of its own, in which it is so.
#[track_caller]
pub fn try_rows(world: impl Fn() -> World, rows: &[Row]) {
    let mut wrong = String::new();
    for row in rows {
        let world = world();
        if let Some(why) = row.fails_in(&world) {
            let _ = writeln!(wrong, "=== `{}`: {why}", row.hint);
        }
        world.end_all();
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// What a shell makes of a line, where descartes is on the path.
pub fn typed(world: &World, place: &str, line: &str) -> Finished {
    world.run(shell(world, place, line))
}

/// A shell that is given this line, in a folder below the world.
pub fn shell(world: &World, place: &str, line: &str) -> Command {
    let mut command = world.command("sh");
    let bin = bins::descartes().parent().unwrap();
    let alone = world.root().join("alone");
    let path = std::env::var("PATH").unwrap();
    let path = format!(
        "{}:{}:{}:{path}",
        world.bin().display(),
        alone.display(),
        bin.display()
    );
    command.env("PATH", path);
    command.current_dir(world.root().join(place));
    command.arg("-c").arg(line);
    command
}

fn all_of(run: &Finished) -> String {
    format!("{}\n{}", run.stdout(), run.stderr())
}

/// The first command of a text that is this suggestion, with what is filled in.
pub fn suggestion(said: &str, hint: &str) -> Option<String> {
    let begins = said.match_indices("descartes ").map(|(at, _)| &said[at..]);
    let mut commands = begins.map(|text| {
        let end = ENDS.iter().filter_map(|end| text.find(end)).min();
        let command = &text[..end.unwrap_or(text.len())];
        command.trim().trim_end_matches(['.', ',', ':'])
    });
    let found = commands.find(|command| is_filled(command, hint));
    found.map(str::to_owned)
}

/// Whether a command is this one; `{…}` stands for anything.
fn is_filled(command: &str, hint: &str) -> bool {
    let mut pieces = hint.split('{');
    let Some(mut rest) = command.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut ends_open = false;
    for piece in pieces {
        let piece = piece.split_once('}').map_or("", |(_, piece)| piece);
        ends_open = piece.is_empty();
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    ends_open || rest.is_empty()
}

#[test]
fn a_suggestion_is_found_with_what_is_filled_in() {
    let said =
        "error: no\nhint: see `descartes loop status a b`, or descartes loop resume 7 -m 2\n";
    for (hint, wanted) in [
        (
            "descartes loop status{id}",
            Some("descartes loop status a b"),
        ),
        (
            "descartes loop status {}",
            Some("descartes loop status a b"),
        ),
        ("descartes loop status", None),
        (
            "descartes loop resume {id} -m {}",
            Some("descartes loop resume 7 -m 2"),
        ),
        ("descartes loop resume {id} -n {}", None),
    ] {
        assert_eq!(suggestion(said, hint).as_deref(), wanted, "{hint}");
    }
}
