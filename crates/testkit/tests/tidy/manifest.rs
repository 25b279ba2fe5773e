//! The crates' manifests, as far as the rules need them: which crate depends on which, and whether it
//! takes the workspace's lints.

use crate::source::text_files;

/// The manifest of one crate.
pub(crate) struct Manifest {
    /// The crate: `engine`.
    pub(crate) crate_name: String,
    /// Names in `[dependencies]` and `[build-dependencies]`, also those of one platform.
    pub(crate) dependencies: Vec<String>,
    /// Names in `[dev-dependencies]`.
    pub(crate) dev_dependencies: Vec<String>,
    /// It says `[lints] workspace = true`.
    pub(crate) takes_lints: bool,
}

impl Manifest {
    /// Reads a manifest that is written one key a line.
    pub(crate) fn new(crate_name: &str, text: &str) -> Manifest {
        let mut manifest = Manifest {
            crate_name: crate_name.to_owned(),
            dependencies: Vec::new(),
            dev_dependencies: Vec::new(),
            takes_lints: false,
        };
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']');
                // [dependencies.name] is a dependency, too.
                if let Some((table, name)) = section.rsplit_once("dependencies.") {
                    manifest.add(&format!("{table}dependencies"), name);
                }
            } else if let Some((key, value)) = line.split_once('=') {
                let name = key.trim().split('.').next().unwrap_or_default();
                manifest.add(section, name);
                let workspace = key.trim() == "workspace" && value.trim() == "true";
                manifest.takes_lints |= section == "lints" && workspace;
            }
        }
        manifest
    }

    fn add(&mut self, section: &str, name: &str) {
        let name = name.trim_matches('"').to_owned();
        if section.ends_with("dev-dependencies") {
            self.dev_dependencies.push(name);
        } else if section.ends_with("dependencies") {
            self.dependencies.push(name);
        }
    }
}

/// The manifests of all crates.
pub(crate) fn manifests() -> Vec<Manifest> {
    let mut manifests = Vec::new();
    for file in text_files("toml") {
        let inside = file.path.strip_prefix("crates/");
        if let Some(crate_name) = inside.and_then(|inside| inside.strip_suffix("/Cargo.toml")) {
            manifests.push(Manifest::new(crate_name, &file.text));
        }
    }
    assert!(manifests.len() >= 7, "the project has seven crates");
    manifests
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let without: Vec<String> = manifests()
        .iter()
        .filter(|manifest| !manifest.takes_lints)
        .map(|manifest| {
            format!(
                "crates/{}/Cargo.toml: add [lints] workspace = true",
                manifest.crate_name
            )
        })
        .collect();
    crate::assert_none(&without);
}

#[test]
fn dependencies_are_found_however_they_are_written() {
    let text = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = \"1\"\n\
                [dependencies.c]\nversion = \"1\"\n[target.'cfg(unix)'.dependencies]\nd = \"1\"\n\
                [dev-dependencies]\ne = { path = \"../e\" }\n[lints]\nworkspace = true\n";
    let manifest = Manifest::new("x", text);
    assert_eq!(manifest.dependencies, ["a", "b", "c", "d"]);
    assert_eq!(manifest.dev_dependencies, ["e"]);
    assert!(manifest.takes_lints);
    assert!(!Manifest::new("x", "[lints.rust]\nworkspace = false\n").takes_lints);
}
