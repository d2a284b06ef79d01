//! What is read off the tokens of a file: product code alone, its lines, the paths it names.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

use super::source::{ModulePath, braces, trees};

/// A path in the code, and the module in which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub from: ModulePath,
    pub path: Vec<String>,
}

/// The stream without doc comments and without what `#[cfg(test)]` and `#[test]` stand before.
pub fn product(stream: TokenStream) -> TokenStream {
    let all = trees(stream);
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let first = at;
        let mut attributes: Vec<(usize, usize)> = Vec::new();
        while let Some(end) = attribute_end(&all, at) {
            attributes.push((at, end));
            at = end;
        }
        if attributes.iter().any(|(_, end)| is_test(&all[end - 1])) {
            let inner = is_punct(all.get(first + 1), '!');
            at = if inner { all.len() } else { item_end(&all, at) };
            continue;
        }
        for (begin, end) in attributes {
            if !is_attribute(&all[end - 1], "doc") {
                kept.extend_from_slice(&all[begin..end]);
            }
        }
        if let Some(tree) = all.get(at) {
            kept.push(match tree {
                TokenTree::Group(group) => within(group).into(),
                other => other.clone(),
            });
            at += 1;
        }
    }
    kept.into_iter().collect()
}

fn within(group: &Group) -> Group {
    let mut new = Group::new(group.delimiter(), product(group.stream()));
    new.set_span(group.span());
    new
}

/// Where the attribute that begins here ends.
fn attribute_end(all: &[TokenTree], at: usize) -> Option<usize> {
    if !is_punct(all.get(at), '#') {
        return None;
    }
    let bang = usize::from(is_punct(all.get(at + 1), '!'));
    match all.get(at + 1 + bang) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
            Some(at + 2 + bang)
        }
        _ => None,
    }
}

fn is_punct(tree: Option<&TokenTree>, char: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

fn is_attribute(bracket: &TokenTree, name: &str) -> bool {
    let TokenTree::Group(group) = bracket else {
        return false;
    };
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Ident(ident)) if ident == name)
}

fn is_test(bracket: &TokenTree) -> bool {
    let mut names = BTreeSet::new();
    idents(bracket, &mut names);
    let about_test = is_attribute(bracket, "cfg") && names.contains("test");
    is_attribute(bracket, "test") || (about_test && !names.contains("not"))
}

fn idents(tree: &TokenTree, names: &mut BTreeSet<String>) {
    match tree {
        TokenTree::Ident(ident) => drop(names.insert(ident.to_string())),
        TokenTree::Group(group) => trees(group.stream()).iter().for_each(|t| idents(t, names)),
        TokenTree::Punct(_) | TokenTree::Literal(_) => {}
    }
}

/// Where the item, field or arm that begins here ends.
fn item_end(all: &[TokenTree], at: usize) -> usize {
    let word = |tree: &TokenTree| match tree {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    };
    let words: Vec<String> = all[at..].iter().filter_map(word).take(3).collect();
    let word = words.iter().map(String::as_str).find(|word| *word != "pub");
    let is_function = words.iter().any(|word| word == "fn");
    let (with_braces, at_comma) = match word {
        Some("const" | "static") if is_function => (true, false),
        Some("use" | "const" | "static" | "type" | "let") => (false, false),
        Some(
            "mod" | "fn" | "struct" | "enum" | "union" | "trait" | "impl" | "unsafe" | "async"
            | "extern" | "macro_rules",
        ) => (true, false),
        _ => (true, true),
    };
    let ends = |index: &usize| {
        let tree = all.get(*index);
        is_punct(tree, ';')
            || (with_braces && braces(tree).is_some())
            || (at_comma && is_punct(tree, ','))
    };
    (at..all.len()).find(ends).map_or(all.len(), |end| end + 1)
}

/// The lines that tokens stand on.
pub fn lines(stream: TokenStream) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut add = |span: Span| seen.extend(span.start().line..=span.end().line);
    let mut open = vec![stream];
    while let Some(stream) = open.pop() {
        for tree in stream {
            match tree {
                TokenTree::Group(group) => {
                    add(group.span_open());
                    add(group.span_close());
                    open.push(group.stream());
                }
                other => add(other.span()),
            }
        }
    }
    seen
}

/// Every path that the code of a module names, `use` with braces taken apart.
pub fn references(stream: TokenStream, module: &[String]) -> Vec<Reference> {
    let all = trees(stream);
    let mut found = Vec::new();
    let mut at = 0;
    while at < all.len() {
        match &all[at] {
            TokenTree::Ident(ident) if ident == "mod" => {
                let name = all.get(at + 1).map(ToString::to_string).unwrap_or_default();
                if let Some(content) = braces(all.get(at + 2)) {
                    found.extend(references(content, &[module, &[name]].concat()));
                    at += 2;
                }
            }
            TokenTree::Ident(_) if colons(&all, at + 1) => {
                let (paths, end) = paths(&all, at, &[]);
                let reference = |path| Reference {
                    from: module.to_vec(),
                    path,
                };
                found.extend(paths.into_iter().map(reference));
                at = end;
                continue;
            }
            TokenTree::Group(group) => found.extend(references(group.stream(), module)),
            _ => {}
        }
        at += 1;
    }
    found
}

fn colons(all: &[TokenTree], at: usize) -> bool {
    is_punct(all.get(at), ':') && is_punct(all.get(at + 1), ':')
}

/// The paths of the tree of names that begins here, and where it ends.
fn paths(all: &[TokenTree], mut at: usize, before: &[String]) -> (Vec<Vec<String>>, usize) {
    let mut path = before.to_vec();
    loop {
        match all.get(at) {
            Some(TokenTree::Ident(ident)) => path.push(ident.to_string()),
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => return (vec![path], at + 1),
            tree => match braces(tree) {
                Some(content) => return (branches(content, &path), at + 1),
                // `Vec::<u8>`: what stands in it is looked at like everything else.
                None => return (vec![path], at),
            },
        }
        at += 1;
        if !colons(all, at) {
            return (vec![path], at);
        }
        at += 2;
    }
}

fn branches(content: TokenStream, before: &[String]) -> Vec<Vec<String>> {
    let all = trees(content);
    let mut found = Vec::new();
    for branch in all.split(|tree| is_punct(Some(tree), ',')) {
        if !branch.is_empty() {
            found.extend(paths(branch, 0, before).0);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> usize {
        lines(product(text.parse().unwrap())).len()
    }

    #[test]
    fn blanks_comments_and_tests_are_no_product_code() {
        let text = "//! About it.\nuse a::b; // why\n\n/// Doc.\nfn f() {\n    // here\n    g();\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn t() {}\n}\n\
                    #[derive(Debug)]\n#[cfg(test)]\nstruct T<A, B>(A, B);\n\
                    const TEXT: &str = \"one\n\nthree\";\n";
        assert_eq!(counted(text), 1 + 3 + 3);
        assert_eq!(counted("#![cfg(test)]\nfn f() {}\n"), 0);
        assert_eq!(counted("#[cfg(not(test))]\nfn f() {}\n"), 2);
        assert_eq!(counted("struct S {\n#[cfg(test)]\na: u8,\nb: u8,\n}"), 3);
    }

    #[test]
    fn paths_are_taken_apart() {
        let text = "use crate::{a::{self, B}, c::*}; mod inner { fn f() { super::g::<u8>(); } }";
        let found = references(text.parse().unwrap(), &[]);
        let joined: Vec<String> = found
            .iter()
            .map(|one| format!("{}>{}", one.from.join("/"), one.path.join("::")))
            .collect();
        let wanted = [
            ">crate::a::self",
            ">crate::a::B",
            ">crate::c",
            "inner>super::g",
        ];
        assert_eq!(joined, wanted);
    }
}
