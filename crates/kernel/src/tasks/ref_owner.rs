//! Whose names in git's refs are.
//!
//! All checkouts of a repository share its refs. Two loops of one tag (the same roadmap in two
//! checkouts, or on two branches; two files of one name) would take each other's branches for their
//! own, so a name belongs to one list, in one checkout, for one branch, as long as there are refs under
//! it. The first one has the tag itself; others get a number: `auth`, `auth@2`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The loop that works, or worked, under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefOwner {
    pub loop_id: String,
    /// Git's name of the checkout, which stays when folders are moved; empty for the main one.
    pub checkout: String,
    /// Where the tasks are within the checkout.
    pub source: String,
    /// The branch that its work lands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The folder that it works in, for people.
    #[serde(with = "descartes_text::path_text::one")]
    pub folder: PathBuf,
    /// Its state file, by which it is found wherever its other files are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "descartes_text::path_text::maybe")]
    pub state_file: Option<PathBuf>,
    #[serde(default)]
    pub pid: u32,
}

impl RefOwner {
    /// Whether refs of the other are this one's as well: it is the same loop, or one of the same list
    /// for the same place, whose work is taken up.
    fn is_same(&self, other: &Self) -> bool {
        let place = |owner: &Self| {
            (
                owner.checkout.clone(),
                owner.source.clone(),
                owner.branch.clone(),
            )
        };
        self.loop_id == other.loop_id || place(self) == place(other)
    }

    /// What a loop of the same tag is told while this one is at work, and what to type next.
    pub fn refusal(&self, tag: &str) -> (String, String) {
        let message = format!(
            "another run is already working on the tag `{tag}` in this repository: loop {} in {} \
             (pid {}); all checkouts share the branches descartes/…",
            self.loop_id,
            self.folder.display(),
            self.pid
        );
        let cancel = match &self.state_file {
            Some(file) => format!(
                "--state-file {}",
                shell_words::quote(&file.to_string_lossy())
            ),
            None => self.loop_id.clone(),
        };
        let hint = format!("wait for it, or end it: descartes loop cancel {cancel}");
        (message, hint)
    }
}

/// Whose worktrees there are for a name whose owner was not written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreesOf {
    /// Of the checkout that asks.
    Us,
    /// Of another checkout of the repository.
    Another,
    Nobody,
}

/// A name under which there are refs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenName {
    pub name: String,
    /// None in a loop of a version that wrote nothing down.
    pub owner: Option<RefOwner>,
    pub trees: TreesOf,
}

/// The name that a loop works under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenName {
    pub name: String,
    /// What a person should know of it.
    pub notice: Option<String>,
}

/// Which of the names of a tag this is: 1 for the tag itself.
pub fn name_number(tag: &str, name: &str) -> Option<u32> {
    match name.strip_prefix(tag)? {
        "" => Some(1),
        rest => {
            let number = rest.strip_prefix('@')?;
            let is_canonical = !number.starts_with(['0', '+']);
            let number = number.parse().ok().filter(|number| *number > 1);
            number.filter(|_| is_canonical)
        }
    }
}

fn numbered(tag: &str, number: u32) -> String {
    match number {
        1 => tag.to_owned(),
        _ => format!("{tag}@{number}"),
    }
}

/// Chooses the name for a loop: the one that is its own already, else the first that is free.
/// `tag` is the tag as a name, `taken` are the names of this tag that have refs.
pub fn choose_name(tag: &str, me: &RefOwner, taken: &[TakenName]) -> ChosenName {
    let is_mine = |taken: &&TakenName| match (&taken.owner, taken.trees) {
        (Some(owner), _) => me.is_same(owner),
        (None, TreesOf::Us) => true,
        (None, TreesOf::Another) => false,
        // As ever, where nobody else can have made them: others never had a number.
        (None, TreesOf::Nobody) => taken.name == tag,
    };
    let of_loop = |taken: &&TakenName| {
        let owner = taken.owner.as_ref();
        owner.is_some_and(|owner| owner.loop_id == me.loop_id)
    };
    let mut mine: Vec<&TakenName> = taken.iter().filter(is_mine).collect();
    mine.sort_by_key(|taken| (!of_loop(taken), name_number(tag, &taken.name)));
    let is_free = |name: &String| !taken.iter().any(|taken| taken.name == *name);
    let mut free = (1..).map(|number| numbered(tag, number)).filter(is_free);
    let name = match mine.first() {
        Some(mine) => mine.name.clone(),
        None => free.next().unwrap_or_default(),
    };
    let other = taken.iter().find(|taken| taken.name == tag);
    let other = other.filter(|_| name != tag);
    let notice = other.map(|other| {
        let whose = match &other.owner {
            Some(owner) => {
                let branch = owner.branch.as_ref();
                let branch = branch.map(|branch| format!(" for the branch {branch}"));
                let folder = owner.folder.display();
                let branch = branch.unwrap_or_default();
                format!("loop {} in {folder}{branch}", owner.loop_id)
            }
            None => "a loop in another checkout".to_owned(),
        };
        format!(
            "the branches descartes/{tag} hold work of {whose}: this loop's branches are \
             descartes/{name}"
        )
    });
    ChosenName { name, notice }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(loop_id: &str, checkout: &str, source: &str) -> RefOwner {
        RefOwner {
            loop_id: loop_id.to_owned(),
            checkout: checkout.to_owned(),
            source: source.to_owned(),
            branch: Some("main".to_owned()),
            folder: PathBuf::from("/p").join(checkout),
            state_file: Some("/p/it's/s.json".into()),
            pid: 7,
        }
    }

    fn taken(name: &str, owner: Option<RefOwner>, trees: TreesOf) -> TakenName {
        TakenName {
            name: name.to_owned(),
            owner,
            trees,
        }
    }

    #[test]
    fn a_name_belongs_to_one_list_in_one_checkout() {
        use TreesOf::{Another, Nobody, Us};
        let me = owner("me", "q2", "ROADMAP.md");
        let other = || Some(owner("a", "", "ROADMAP.md"));
        let file = || Some(owner("b", "q2", "two/ROADMAP.md"));
        let before = || Some(owner("c", "q2", "ROADMAP.md"));
        let moved = || Some(owner("me", "q2", "old/ROADMAP.md"));
        let branch = || {
            let mut owner = before()?;
            owner.branch = Some("feat".to_owned());
            Some(owner)
        };
        let table: [(&str, Vec<TakenName>, &str); 15] = [
            ("nothing there", vec![], "t"),
            ("another checkout", vec![taken("t", other(), Nobody)], "t@2"),
            ("whatever trees", vec![taken("t", other(), Us)], "t@2"),
            ("a file of one name", vec![taken("t", file(), Us)], "t@2"),
            ("another branch", vec![taken("t", branch(), Us)], "t@2"),
            ("the same list", vec![taken("t", before(), Nobody)], "t"),
            ("this loop", vec![taken("t", moved(), Nobody)], "t"),
            ("0.1.0, trees here", vec![taken("t", None, Us)], "t"),
            ("0.1.0, no trees", vec![taken("t", None, Nobody)], "t"),
            ("0.1.0 elsewhere", vec![taken("t", None, Another)], "t@2"),
            (
                "its own number",
                vec![taken("t", other(), Nobody), taken("t@2", before(), Nobody)],
                "t@2",
            ),
            (
                "its number, though the tag is free",
                vec![taken("t@3", before(), Nobody)],
                "t@3",
            ),
            (
                "a number whose owner is lost",
                vec![taken("t", other(), Nobody), taken("t@2", None, Nobody)],
                "t@3",
            ),
            (
                "the same, with trees here",
                vec![taken("t", other(), Nobody), taken("t@2", None, Us)],
                "t@2",
            ),
            (
                "this loop before others of the list",
                vec![taken("t", before(), Nobody), taken("t@2", moved(), Nobody)],
                "t@2",
            ),
        ];
        for (case, taken, name) in table {
            let chosen = choose_name("t", &me, &taken);
            assert_eq!(chosen.name, name, "{case}");
            let is_told = name != "t" && taken.iter().any(|taken| taken.name == "t");
            assert_eq!(chosen.notice.is_some(), is_told, "{case}");
        }
    }

    #[test]
    fn names_of_a_tag_are_told_from_those_of_others() {
        let table = [
            ("t", Some(1)),
            ("t@2", Some(2)),
            ("t@12", Some(12)),
            ("t@1", None),
            ("t@02", None),
            ("t@+2", None),
            ("t@x", None),
            ("t2", None),
            ("other", None),
        ];
        for (name, number) in table {
            assert_eq!(name_number("t", name), number, "{name}");
        }
    }

    #[test]
    fn who_is_refused_is_told_whom_to_wait_for_and_what_to_type() {
        let (message, hint) = owner("a", "q", "ROADMAP.md").refusal("roadmap");
        assert!(message.contains("`roadmap`"), "{message}");
        assert!(message.contains("loop a in /p/q (pid 7)"), "{message}");
        assert_eq!(
            hint,
            r"wait for it, or end it: descartes loop cancel --state-file '/p/it'\''s/s.json'"
        );
    }
}
