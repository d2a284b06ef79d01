//! Circles of imports: files of a crate that need each other.

use std::collections::BTreeSet;

use super::source::{Crate, ModulePath};
use super::tokens::Reference;

/// A `use` that leads to a `use` is followed so far.
const MOST_HOPS: usize = 16;

/// The files of each circle, by number: a file that others of the circle need and that needs them.
pub fn circles(of: &Crate) -> Vec<Vec<usize>> {
    let edges: Vec<BTreeSet<usize>> = (0..of.files.len()).map(|file| needs(of, file)).collect();
    components(&edges)
}

/// The files whose definitions a file names.
fn needs(of: &Crate, file: usize) -> BTreeSet<usize> {
    let references = of.files[file].references.iter();
    let mut needed: BTreeSet<usize> = references
        .filter(|reference| leads_away(reference))
        .filter_map(|reference| definition(of, reference))
        .collect();
    needed.remove(&file);
    needed
}

/// A file and the modules that it declares and calls by their own names are one room: only what
/// names a way through `crate` or `super` counts.
fn leads_away(reference: &Reference) -> bool {
    let first = reference.path.first().map(String::as_str);
    matches!(first, Some("crate" | "super"))
}

/// The file in which the first thing of a path that is no module is defined: what a module only
/// passes on with `use` is not its own.
fn definition(of: &Crate, reference: &Reference) -> Option<usize> {
    let (mut from, mut path) = (reference.from.clone(), reference.path.clone());
    for _ in 0..MOST_HOPS {
        let (module, name) = split(of, &from, &path)?;
        let found = of.modules.get(&module)?;
        let Some(name) = name else {
            return Some(found.file);
        };
        if found.names.contains(&name) {
            return Some(found.file);
        }
        if let Some(next) = found.imports.get(&name) {
            (from, path) = (module, next.clone());
            continue;
        }
        let behind = found.globs.iter().find_map(|glob| {
            let (module, rest) = split(of, &module, glob)?;
            let target = of.modules.get(&module)?;
            let there = target.names.contains(&name) || target.imports.contains_key(&name);
            (rest.is_none() && there).then_some(module)
        });
        let Some(next) = behind else {
            return Some(found.file);
        };
        (from, path) = (next, vec!["self".to_owned(), name]);
    }
    None
}

/// The module that a path leads to, and the first name in it; none where it leads out of the crate.
fn split(of: &Crate, from: &[String], path: &[String]) -> Option<(ModulePath, Option<String>)> {
    let mut module = from.to_vec();
    let mut rest = path.iter().peekable();
    match path.first()?.as_str() {
        "crate" => {
            let second_root = from.first().filter(|name| name.starts_with('{'));
            module = second_root.cloned().into_iter().collect();
            rest.next();
        }
        "self" | "super" => {
            while let Some(word) = rest.next_if(|word| matches!(word.as_str(), "self" | "super")) {
                if word == "super" {
                    module.pop()?;
                }
            }
        }
        // A child, or something brought in by `use`, which is looked at by itself.
        name => {
            module.push(name.to_owned());
            of.modules.get(&module)?;
            rest.next();
        }
    }
    while let Some(word) = rest.peek() {
        let below = [module.as_slice(), std::slice::from_ref(*word)].concat();
        if !of.modules.contains_key(&below) {
            break;
        }
        module = below;
        rest.next();
    }
    let name = rest.next().filter(|word| *word != "self").cloned();
    Some((module, name))
}

/// Strongly connected components with more than one member, by Tarjan's algorithm.
fn components(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        edges,
        order: vec![None; edges.len()],
        low: vec![0; edges.len()],
        open: Vec::new(),
        count: 0,
        found: Vec::new(),
    };
    for node in 0..edges.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    let mut found = search.found;
    found.iter_mut().for_each(|circle| circle.sort_unstable());
    found.sort();
    found
}

struct Search<'a> {
    edges: &'a [BTreeSet<usize>],
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    open: Vec<usize>,
    count: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, node: usize) {
        let mine = self.count;
        self.order[node] = Some(mine);
        self.low[node] = mine;
        self.count += 1;
        self.open.push(node);
        for next in &self.edges[node] {
            match self.order[*next] {
                None => {
                    self.visit(*next);
                    self.low[node] = self.low[node].min(self.low[*next]);
                }
                Some(order) if self.open.contains(next) => {
                    self.low[node] = self.low[node].min(order);
                }
                Some(_) => {}
            }
        }
        if self.low[node] == mine {
            let from = self.open.iter().position(|open| *open == node);
            let members = self.open.split_off(from.unwrap_or(self.open.len()));
            if members.len() > 1 {
                self.found.push(members);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leads_back_is_a_circle() {
        let edges: Vec<BTreeSet<usize>> = [vec![1, 3], vec![2], vec![0], vec![4], vec![]]
            .map(BTreeSet::from_iter)
            .into();
        assert_eq!(components(&edges), [[0, 1, 2]]);
    }

    #[test]
    fn what_a_module_passes_on_is_not_its_own() {
        let world = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = world.path().join("crates/one/src").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("lib.rs", "mod room; mod other;");
        write(
            "room/mod.rs",
            "mod table; mod chair; pub use table::Table; pub use chair::*;",
        );
        write("room/table.rs", "pub struct Table;");
        // No circle by way of mod.rs, which only passes `Table` on.
        write("room/chair.rs", "use super::Table; pub struct Chair;");
        write(
            "other.rs",
            "use crate::room::Chair; #[cfg(test)] use crate::room::Lamp;",
        );
        let of = Crate::read(world.path(), "crates/one").unwrap();
        assert_eq!(circles(&of), Vec::<Vec<usize>>::new());
        write(
            "room/table.rs",
            "pub struct Table; fn f(_: super::chair::Chair) {}",
        );
        let of = Crate::read(world.path(), "crates/one").unwrap();
        let found = circles(&of);
        let names: Vec<_> = found[0]
            .iter()
            .map(|file| of.files[*file].path.file_name().unwrap())
            .collect();
        assert_eq!(names, ["table.rs", "chair.rs"]);
    }
}
