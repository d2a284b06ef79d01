//! The product's files: those that the roots of each crate reach, without what only tests see.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Item, UseTree};

use super::tokens::{self, Reference};

/// A module's path from the root of its crate, without `crate`.
pub type ModulePath = Vec<String>;

/// A file of product code.
#[derive(Debug)]
pub struct SourceFile {
    /// From the repository's root.
    pub path: PathBuf,
    /// Lines with code on them.
    pub lines: usize,
    /// Paths that its code names.
    pub references: Vec<Reference>,
}

/// What a module holds.
#[derive(Debug, Default)]
pub struct Module {
    /// Its file, by number.
    pub file: usize,
    /// Names of everything that is defined in it.
    pub names: BTreeSet<String>,
    /// Structs, enums, unions, traits and aliases.
    pub types: Vec<String>,
    /// Names that `use` brings in, and where they come from.
    pub imports: BTreeMap<String, Vec<String>>,
    /// Where `use …::*` points.
    pub globs: Vec<Vec<String>>,
}

/// All files of a crate that go into a library or program.
#[derive(Debug, Default)]
pub struct Crate {
    /// The folder's name.
    pub name: String,
    pub files: Vec<SourceFile>,
    pub modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    /// Reads the crate in `crates/NAME` (or `xtask`), from all its roots.
    pub fn read(root: &Path, folder: &str) -> Result<Self, String> {
        let mut all = Self {
            name: folder.rsplit('/').next().unwrap_or(folder).to_owned(),
            ..Self::default()
        };
        let src = root.join(folder).join("src");
        let mut roots: Vec<PathBuf> = ["lib.rs", "main.rs"].map(|name| src.join(name)).into();
        let programs = fs::read_dir(src.join("bin"));
        roots.extend(programs.into_iter().flatten().flatten().map(|e| e.path()));
        roots.retain(|path| path.is_file() && path.extension().is_some_and(|e| e == "rs"));
        roots.sort();
        for (number, path) in roots.iter().enumerate() {
            // The names of a second root are kept apart from those of the first.
            let module = match number {
                0 => Vec::new(),
                number => vec![format!("{{root {number}}}")],
            };
            all.add_file(root, path, &module, Children::Beside)?;
        }
        Ok(all)
    }

    fn add_file(
        &mut self,
        root: &Path,
        path: &Path,
        module: &[String],
        children: Children,
    ) -> Result<(), String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = fs::read_to_string(path).map_err(|error| said(&error))?;
        let stream: TokenStream = text.parse().map_err(|error| said(&error))?;
        let stream = tokens::product(stream);
        let parsed: syn::File = syn::parse2(stream.clone()).map_err(|error| said(&error))?;
        let file = self.files.len();
        self.files.push(SourceFile {
            path: path.strip_prefix(root).unwrap_or(path).to_owned(),
            lines: tokens::lines(stream.clone()).len(),
            references: tokens::references(stream, module),
        });
        let folder = match (children, path.parent(), path.file_stem()) {
            (Children::Beside, Some(folder), _) => folder.to_owned(),
            (Children::Below, Some(folder), Some(stem)) => folder.join(stem),
            _ => return Err(said(&"no folder")),
        };
        self.add_module(root, &parsed.items, module, file, &folder)
    }

    fn add_module(
        &mut self,
        root: &Path,
        items: &[Item],
        path: &[String],
        file: usize,
        folder: &Path,
    ) -> Result<(), String> {
        let mut module = Module {
            file,
            ..Module::default()
        };
        for item in items {
            module.add(item);
            let Item::Mod(child) = item else { continue };
            let name = child.ident.to_string();
            let child_path = [path, std::slice::from_ref(&name)].concat();
            match &child.content {
                Some((_, items)) => {
                    self.add_module(root, items, &child_path, file, &folder.join(&name))?;
                }
                None => {
                    let (file, children) = find(folder, child, &name)?;
                    self.add_file(root, &file, &child_path, children)?;
                }
            }
        }
        self.modules.insert(path.to_vec(), module);
        Ok(())
    }
}

/// Where the files of a file's modules are.
#[derive(Clone, Copy)]
enum Children {
    /// In its own folder: `lib.rs`, `mod.rs`.
    Beside,
    /// In a folder of its name.
    Below,
}

fn find(folder: &Path, child: &syn::ItemMod, name: &str) -> Result<(PathBuf, Children), String> {
    let given = child.attrs.iter().find_map(|attribute| {
        let pair = attribute.meta.require_name_value().ok()?;
        match (&pair.value, pair.path.is_ident("path")) {
            (syn::Expr::Lit(literal), true) => match &literal.lit {
                syn::Lit::Str(text) => Some(folder.join(text.value())),
                _ => None,
            },
            _ => None,
        }
    });
    let plain = given.unwrap_or_else(|| folder.join(format!("{name}.rs")));
    if plain.is_file() {
        return Ok((plain, Children::Below));
    }
    let inside = folder.join(name).join("mod.rs");
    match inside.is_file() {
        true => Ok((inside, Children::Beside)),
        false => Err(format!("no file for `mod {name}` in {}", folder.display())),
    }
}

impl Module {
    fn add(&mut self, item: &Item) {
        let (name, is_type) = match item {
            Item::Struct(item) => (&item.ident, true),
            Item::Enum(item) => (&item.ident, true),
            Item::Union(item) => (&item.ident, true),
            Item::Trait(item) => (&item.ident, true),
            Item::Type(item) => (&item.ident, true),
            Item::Fn(item) => (&item.sig.ident, false),
            Item::Const(item) => (&item.ident, false),
            Item::Static(item) => (&item.ident, false),
            Item::Macro(syn::ItemMacro {
                ident: Some(name), ..
            }) => (name, false),
            Item::Use(item) => return self.import(&item.tree, &mut Vec::new()),
            _ => return,
        };
        self.names.insert(name.to_string());
        if is_type {
            self.types.push(name.to_string());
        }
    }

    fn import(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before);
                }
            }
            UseTree::Glob(_) => self.globs.push(before.clone()),
            UseTree::Name(syn::UseName { ident }) if ident == "self" => {
                if let Some(name) = before.last() {
                    self.imports.insert(name.clone(), before.clone());
                }
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                let target = [before.as_slice(), std::slice::from_ref(&name)].concat();
                self.imports.insert(name, target);
            }
            UseTree::Rename(name) => {
                let target = [before.as_slice(), &[name.ident.to_string()]].concat();
                self.imports.insert(name.rename.to_string(), target);
            }
        }
    }
}

/// The trees of a stream.
pub fn trees(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

/// The content of a group with braces.
pub fn braces(tree: Option<&TokenTree>) -> Option<TokenStream> {
    match tree {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            Some(group.stream())
        }
        _ => None,
    }
}
