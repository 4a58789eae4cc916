//! No files of a package import each other in a circle: each can be read with those below it in mind.
//!
//! A module puts its parts together, and they may use what it defines: its imports of them do not count. What it hands on
//! (`pub use`) is looked for where it is defined.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{NamedPath, Source};

type Module = Vec<String>;

/// The files of a package by their modules, and the names that these hand on.
struct Package<'a> {
    files: BTreeMap<Module, &'a Source>,
    handed_on: BTreeMap<(Module, String), Module>,
}

/// The files of each package that stand in a circle, with the imports that tie them.
pub(super) fn circles(sources: &[Source]) -> Vec<String> {
    let roots: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| root_of(&source.path))
        .collect();
    roots
        .into_iter()
        .flat_map(|root| Package::of(root, sources).tied())
        .collect()
}

/// The folder with the sources of the package that a file is of; none where the file is a test's.
fn root_of(path: &str) -> Option<&str> {
    let end = path.find("src/")? + "src/".len();
    Some(&path[..end])
}

impl<'a> Package<'a> {
    fn of(root: &str, sources: &'a [Source]) -> Self {
        let own = sources
            .iter()
            .filter(|source| !source.is_test_file() && root_of(&source.path) == Some(root));
        let module = |source: &Source| -> Module {
            let path = source.path.trim_start_matches(root).trim_end_matches(".rs");
            let names = path.split('/').filter(|name| !matches!(*name, "mod" | "lib"));
            names.map(str::to_owned).collect()
        };
        let files: BTreeMap<Module, &Source> = own.map(|source| (module(source), source)).collect();
        let mut package = Self {
            files,
            handed_on: BTreeMap::new(),
        };
        for (module, source) in &package.files {
            for path in source.paths().iter().filter(|path| path.is_handed_on) {
                if let (Some(to), Some(name)) = (package.absolute(module, path), path.segments.last()) {
                    package.handed_on.insert((module.clone(), name.clone()), to);
                }
            }
        }
        package
    }

    /// A path from the root of the package; none where it leads to another.
    fn absolute(&self, module: &Module, path: &NamedPath) -> Option<Module> {
        let first = path.segments.first()?.as_str();
        let supers = path.segments.iter().take_while(|name| *name == "super").count();
        let (above, rest) = match first {
            "crate" => (&module[..0], &path.segments[1..]),
            "self" => (&module[..], &path.segments[1..]),
            "super" => {
                let depth = (module.len() + path.inline_depth).checked_sub(supers)?;
                (&module[..depth.min(module.len())], &path.segments[supers..])
            }
            _ => {
                let child: Module = module.iter().cloned().chain([first.to_owned()]).collect();
                self.files.get(&child)?;
                (&module[..], &path.segments[..])
            }
        };
        Some(above.iter().chain(rest).cloned().collect())
    }

    /// The file that defines what a path from the root names.
    fn definer(&self, mut path: Module) -> Option<Module> {
        // Handed on a few times at most.
        for _ in 0..8 {
            let mut depth = path.len();
            while !self.files.contains_key(&path[..depth]) {
                depth = depth.checked_sub(1)?;
            }
            let module = path[..depth].to_vec();
            let handed_on = path.get(depth).map(|name| (module.clone(), name.clone()));
            match handed_on.and_then(|name| self.handed_on.get(&name)) {
                Some(to) => path = to.iter().chain(&path[depth + 1..]).cloned().collect(),
                None => return Some(module),
            }
        }
        None
    }

    /// The imports between files that are left when all files are taken away, one after another, that import none of the rest or that
    /// none of the rest imports.
    fn tied(&self) -> Vec<String> {
        let mut imports: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, source) in &self.files {
            let paths = source.paths();
            let named = paths
                .iter()
                .filter(|path| !path.is_handed_on && !source.is_test(path.line))
                .filter_map(|path| self.definer(self.absolute(module, path)?));
            imports.insert(module, named.filter(|other| !other.starts_with(module)).collect());
        }
        loop {
            let left: BTreeSet<Module> = imports.keys().map(|module| (*module).clone()).collect();
            for others in imports.values_mut() {
                others.retain(|other| left.contains(other));
            }
            let imported: BTreeSet<Module> = imports.values().flatten().cloned().collect();
            imports.retain(|module, others| !others.is_empty() && imported.contains(*module));
            if imports.len() == left.len() {
                break;
            }
        }
        let line = |(module, others): (&&Module, &BTreeSet<Module>)| {
            let others: Vec<_> = others
                .iter()
                .map(|other| self.files[other].path.as_str())
                .collect();
            let path = &self.files[*module].path;
            format!("{path}: stands in a circle of imports, by {}", others.join(", "))
        };
        imports.iter().map(line).collect()
    }
}

#[test]
fn a_circle_is_found_also_where_a_name_is_handed_on() {
    let house = |b: &str| {
        [
            ("src/lib.rs", "mod a;\nmod b;\npub use b::B;\n"),
            ("src/a.rs", "use crate::B;\npub struct A(B);\n"),
            ("src/b.rs", b),
        ]
        .map(|(path, text)| Source::new(path, text))
    };
    assert_eq!(circles(&house("pub struct B;\n")), Vec::<String>::new());
    let tied = circles(&house("use super::a::A;\npub struct B(Box<A>);\n"));
    assert_eq!(tied.len(), 2, "{tied:?}");
}
