//! The project's files as rules see them, with what is a test taken out where a rule asks for that.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use allosaur_testkit::data::workspace_root;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Folders that are not ours, wherever they are.
const FOREIGN_FOLDERS: [&str; 4] = ["target", "node_modules", "__pycache__", "shared"];

/// A text file of the project.
pub(crate) struct TextFile {
    /// From the workspace's root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A Rust file of the project.
pub(crate) struct RustFile {
    /// From the workspace's root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
}

impl RustFile {
    /// Parses a file; rules' own tests make their examples with it.
    pub(crate) fn new(path: &str, text: &str) -> RustFile {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        RustFile {
            path: path.to_owned(),
            text: text.to_owned(),
            syntax,
        }
    }

    /// The crate that the file belongs to: `engine` for `crates/engine/...`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The file is compiled into a library or program, not only into tests and examples.
    pub(crate) fn is_product(&self) -> bool {
        let Some(inside) = self.path.split_once("/src/").map(|(_, inside)| inside) else {
            return false;
        };
        !inside
            .split('/')
            .any(|part| part == "tests" || part == "tests.rs")
    }

    /// The modules that lead to this file from its crate's root: `["vm", "run"]`.
    pub(crate) fn module(&self) -> Vec<String> {
        let inside = self
            .path
            .split_once("/src/")
            .map_or("", |(_, inside)| inside);
        let inside = inside.trim_end_matches(".rs");
        let parts = inside.split('/').map(str::to_owned);
        let mut module: Vec<String> = parts.collect();
        if matches!(module.last().map(String::as_str), Some("mod"))
            || module.len() == 1 && is_root(inside)
        {
            module.pop();
        }
        module
    }

    /// Lines of the file that are not those of its test modules.
    pub(crate) fn lines_without_tests(&self) -> usize {
        let mut counter = TestLines::default();
        counter.visit_file(&self.syntax);
        self.text.lines().count() - counter.lines
    }
}

fn is_root(module: &str) -> bool {
    module == "lib" || module == "main"
}

/// Counts the lines of items that are compiled for tests only.
#[derive(Default)]
struct TestLines {
    lines: usize,
}

impl<'ast> Visit<'ast> for TestLines {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test_only(item) {
            self.lines += line_count(item);
        } else {
            visit::visit_item(self, item);
        }
    }
}

/// The lines from the first to the last of something.
pub(crate) fn line_count(of: &impl Spanned) -> usize {
    let span = of.span();
    span.end().line - span.start().line + 1
}

/// The item carries `#[cfg(test)]`, or another `cfg` that needs `test`.
pub(crate) fn is_test_only(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
    })
}

/// A rule that waits for the thread that has the files.
type Job = Box<dyn FnOnce(&[RustFile]) + Send>;

/// Runs a rule over all Rust files of the project. They are parsed once for all rules, by a thread
/// that keeps them, since syntax trees cannot be shared between threads; a panic is the caller's.
pub(crate) fn with_rust_files<T: Send + 'static>(
    rule: impl FnOnce(&[RustFile]) -> T + Send + 'static,
) -> T {
    static JOBS: OnceLock<Sender<Job>> = OnceLock::new();
    let (result, done) = channel();
    let job = move |files: &[RustFile]| {
        let found = catch_unwind(AssertUnwindSafe(|| rule(files)));
        result.send(found).expect("the rule's test waits");
    };
    let jobs = JOBS.get_or_init(start_parser);
    jobs.send(Box::new(job)).expect("a thread has the files");
    let found = done.recv().expect("the files can be parsed");
    found.unwrap_or_else(|panic| resume_unwind(panic))
}

fn start_parser() -> Sender<Job> {
    let (jobs, waiting) = channel::<Job>();
    thread::spawn(move || {
        let files = rust_files();
        for job in waiting {
            job(&files);
        }
    });
    jobs
}

fn rust_files() -> Vec<RustFile> {
    let files = text_files("rs");
    assert!(
        files.len() > 20,
        "the project has more Rust files than this"
    );
    files
        .iter()
        .map(|file| RustFile::new(&file.path, &file.text))
        .collect()
}

/// All files of the project with this ending.
pub(crate) fn text_files(ending: &str) -> Vec<TextFile> {
    let root = workspace_root();
    let mut files = Vec::new();
    collect(&root, &root, ending, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// One file, if it is there.
pub(crate) fn text_file(path: &str) -> Option<String> {
    fs::read_to_string(workspace_root().join(path)).ok()
}

fn collect(root: &Path, folder: &Path, ending: &str, files: &mut Vec<TextFile>) {
    for entry in fs::read_dir(folder).expect("the project's folders can be read") {
        let entry = entry.expect("the project's folders can be read");
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().expect("the kind of a file is known");
        if kind.is_dir() && !name.starts_with('.') && !FOREIGN_FOLDERS.contains(&&*name) {
            // A virtual environment is somebody else's code, whatever its name.
            if !path.join("pyvenv.cfg").exists() {
                collect(root, &path, ending, files);
            }
        }
        if kind.is_file() && path.extension().is_some_and(|e| e == ending) {
            let inside = path.strip_prefix(root).expect("the walk began at the root");
            files.push(TextFile {
                path: inside.to_string_lossy().replace('\\', "/"),
                text: fs::read_to_string(&path).expect("the project's files are text"),
            });
        }
    }
}

#[test]
fn a_file_knows_its_place() {
    let at = |path: &str| RustFile::new(path, "");
    assert_eq!(
        at("crates/engine/src/vm/run.rs").crate_name(),
        Some("engine")
    );
    assert_eq!(at("fuzz/src/lib.rs").crate_name(), None);
    assert_eq!(at("crates/engine/src/vm/run.rs").module(), ["vm", "run"]);
    assert_eq!(at("crates/engine/src/vm/mod.rs").module(), ["vm"]);
    assert_eq!(at("crates/engine/src/stats.rs").module(), ["stats"]);
    assert_eq!(at("crates/engine/src/lib.rs").module(), [""; 0]);
    assert!(at("crates/engine/src/vm/run.rs").is_product());
    assert!(!at("crates/engine/src/vm/tests.rs").is_product());
    assert!(!at("crates/engine/tests/vm_run.rs").is_product());
    assert!(!at("crates/port/examples/throughput.rs").is_product());
}

#[test]
fn test_modules_do_not_count() {
    let text = "//! Doc.\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
    assert_eq!(RustFile::new("a.rs", text).lines_without_tests(), 2);
    let text = "#[cfg(not(test))]\nmod real {\n}\n#[cfg(all(test, unix))]\nmod a {}\n";
    assert_eq!(RustFile::new("a.rs", text).lines_without_tests(), 3);
}
