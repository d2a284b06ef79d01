//! Patterns of file names.

/// More than so many files are not looked for: a gate of thousands of scripts is none that an agent's change of
/// one would be told of in time.
const MOST: usize = 500;

/// Whether a name stands for more than one file.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The files that a pattern stands for; `**` are folders in each other. `list` gives what is in a folder, and
/// whether it is a folder itself.
pub fn expand(pattern: &str, list: &dyn Fn(&str) -> Vec<(String, bool)>) -> Vec<String> {
    let parts: Vec<&str> = pattern.split('/').collect();
    let mut found = Vec::new();
    let start = if pattern.starts_with('/') { "/" } else { "" };
    walk(start, &parts, list, &mut found);
    found.sort();
    found.dedup();
    found
}

fn walk(
    folder: &str,
    parts: &[&str],
    list: &dyn Fn(&str) -> Vec<(String, bool)>,
    found: &mut Vec<String>,
) {
    let Some((part, rest)) = parts.split_first() else {
        return;
    };
    if found.len() >= MOST {
        return;
    }
    if matches!(*part, "" | ".") {
        return walk(folder, rest, list, found);
    }
    let below = |name: &str| match folder {
        "" => name.to_owned(),
        "/" => format!("/{name}"),
        folder => format!("{folder}/{name}"),
    };
    if *part == ".." || (!is_pattern(part) && !rest.is_empty()) {
        return walk(&below(part), rest, list, found);
    }
    if *part == "**" {
        walk(folder, rest, list, found);
    }
    for (name, is_folder) in list(folder) {
        // As shells have it: what begins with a dot is named.
        let is_hidden = name.starts_with('.') && !part.starts_with('.');
        if is_hidden || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        match (*part, is_folder) {
            ("**", true) => walk(&below(&name), parts, list, found),
            ("**", false) => {}
            (part, true) if !rest.is_empty() && fits(part, &name) => {
                walk(&below(&name), rest, list, found);
            }
            (part, false) if rest.is_empty() && fits(part, &name) => found.push(below(&name)),
            _ => {}
        }
    }
}

/// Folders with the work of others.
const SKIPPED: [&str; 4] = ["node_modules", "target", "vendor", ".venv"];

fn fits(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let Some(sign) = pattern.next() else {
        return name.next().is_none();
    };
    match sign {
        '*' => {
            let pattern = pattern.as_str();
            let mut rest = name;
            loop {
                if fits(pattern, rest.as_str()) {
                    return true;
                }
                if rest.next().is_none() {
                    return false;
                }
            }
        }
        '?' => name.next().is_some() && fits(pattern.as_str(), name.as_str()),
        '[' => {
            let Some((class, rest)) = pattern.as_str().split_once(']') else {
                return false;
            };
            let wanted = !class.starts_with(['!', '^']);
            let class = class.trim_start_matches(['!', '^']);
            let range = |c: char| {
                let signs: Vec<char> = class.chars().collect();
                let is_range = |three: &[char]| three[1] == '-' && three[0] <= c && c <= three[2];
                signs.contains(&c) || signs.windows(3).any(is_range)
            };
            name.next().is_some_and(|c| range(c) == wanted) && fits(rest, name.as_str())
        }
        sign => name.next() == Some(sign) && fits(pattern.as_str(), name.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_the_files_that_a_shell_would_name() {
        let list = |folder: &str| -> Vec<(String, bool)> {
            let entries: &[(&str, bool)] = match folder {
                "" => &[("ci", true), ("a.sh", false), (".hidden", true)],
                "ci" => &[
                    ("a.sh", false),
                    ("b.py", false),
                    ("c", true),
                    (".d.sh", false),
                ],
                "ci/c" => &[("e.sh", false)],
                _ => &[],
            };
            let entries = entries.iter();
            entries
                .map(|(name, folder)| ((*name).to_owned(), *folder))
                .collect()
        };
        for (pattern, files) in [
            ("ci/*.sh", &["ci/a.sh"][..]),
            ("./ci/?.[a-s]*", &["ci/a.sh", "ci/b.py"]),
            ("ci/**/*.sh", &["ci/a.sh", "ci/c/e.sh"]),
            ("**/*.sh", &["a.sh", "ci/a.sh", "ci/c/e.sh"]),
            ("*/[!a]*", &["ci/b.py"]),
            ("none/*", &[]),
        ] {
            assert_eq!(expand(pattern, &list), files, "{pattern}");
        }
    }
}
