//! The pages against the code: tables are what the code's tables say, links lead somewhere, programs are valid.
//! `VYRE_BLESS=1` rewrites tables. (The commands in the README are run by the tests of `vyre-cli`.)

use std::fmt::Write;
use std::path::{Path, PathBuf};
use vyre::ir::{Access, AtomicOp, BinaryOp, Builtin, DataType, OpId, SubgroupOp, TernaryOp, UnaryOp};
use vyre::spec::{ErrorCode, Storage};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// README and ARCHITECTURE, and every page of the book.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> = ["README.md", "ARCHITECTURE.md"].map(String::from).into();
    let entries = std::fs::read_dir(root().join("docs")).expect("there are pages");
    let names = entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")));
    pages.sort();
    pages
}

/// The book has every page, and every chapter is one.
#[test]
fn every_page_is_a_chapter() {
    let summary = read("docs/SUMMARY.md");
    let mut chapters: Vec<String> =
        summary.split("](").skip(1).filter_map(|rest| Some(format!("docs/{}", rest.split(')').next()?))).collect();
    chapters.sort();
    let mut found = pages();
    found.retain(|page| page.starts_with("docs/") && page != "docs/SUMMARY.md");
    assert_eq!(chapters, found);
}

fn ops(rows: impl Iterator<Item = OpId>) -> String {
    let mut table = String::from("| written | T | result | meaning |\n|---|---|---|---|\n");
    for op in rows {
        let info = op.info();
        let _ = writeln!(table, "| `{}` | {} | {} | {} |", op.written().replace('|', "\\|"), info.over, info.result, info.doc);
    }
    table
}

fn types() -> String {
    let mut table = String::from("| type | bits | loads as | stores |\n|---|---|---|---|\n");
    let kernel = DataType::KERNEL_SCALARS.into_iter().chain([DataType::vector(vyre::ir::Scalar::F32, 4)]);
    for ty in kernel {
        let (loads, stores) = match ty.storage() {
            Storage::Computed(value) => (value.to_string(), "the value"),
            Storage::Converted(scalar) => (scalar.to_string(), "narrowed"),
            Storage::LoadOnly(scalar) => (scalar.to_string(), "none"),
            Storage::Described => unreachable!("kernel types only"),
        };
        let _ = writeln!(table, "| `{ty}` | {} | {loads} | {stores} |", ty.bits().expect("kernel types have sizes"));
    }
    table
}

fn builtins() -> String {
    Builtin::ALL.iter().map(|builtin| format!("`{builtin}`")).collect::<Vec<_>>().join(" ") + "\n"
}

fn accesses() -> String {
    let mut table = String::from("| access | input | output | can be written |\n|---|---|---|---|\n");
    let yes = |yes: bool| if yes { "yes" } else { "" };
    for access in Access::ALL {
        let _ = writeln!(
            table,
            "| `{access}` | {} | {} | {} |",
            yes(access.is_input()),
            yes(access.is_output()),
            yes(access.is_writable())
        );
    }
    table
}

fn codes() -> String {
    let mut table = String::from("| code | meaning |\n|---|---|\n");
    for code in ErrorCode::ALL {
        let _ = writeln!(table, "| {code} | {} |", code.title());
    }
    table
}

/// Replaces what stands between `<!-- table NAME -->` and `<!-- end -->`.
fn with_tables(page: &str) -> String {
    let tables: [(&str, String); 9] = [
        ("unary", ops(UnaryOp::ALL.iter().map(|op| OpId::Unary(*op)))),
        ("binary", ops(BinaryOp::ALL.iter().map(|op| OpId::Binary(*op)))),
        ("ternary", ops(TernaryOp::ALL.iter().map(|op| OpId::Ternary(*op)))),
        ("atomic", ops(AtomicOp::ALL.iter().map(|op| OpId::Atomic(*op)))),
        ("subgroup", ops(SubgroupOp::ALL.iter().map(|op| OpId::Subgroup(*op)))),
        ("types", types()),
        ("builtins", builtins()),
        ("accesses", accesses()),
        ("codes", codes()),
    ];
    let mut page = page.to_string();
    for (name, table) in tables {
        let open = format!("<!-- table {name} -->\n");
        let start = page.find(&open).unwrap_or_else(|| panic!("docs/ir.md has no table {name}")) + open.len();
        let end = start + page[start..].find("<!-- end -->").unwrap_or_else(|| panic!("table {name} does not end"));
        page.replace_range(start..end, &table);
    }
    page
}

#[test]
fn the_tables_in_the_language_page_are_those_of_the_code() {
    let page = read("docs/ir.md");
    let wanted = with_tables(&page);
    if page != wanted && std::env::var_os("VYRE_BLESS").is_some() {
        std::fs::write(root().join("docs/ir.md"), &wanted).expect("docs/ir.md can be written");
        return;
    }
    assert!(page == wanted, "docs/ir.md is stale; run VYRE_BLESS=1 cargo test -p vyre --test docs");
}

/// Every `](path)` of the pages that is not an address must exist.
#[test]
fn links_in_the_pages_lead_to_files() {
    for page in pages() {
        let page = page.as_str();
        let text = read(page);
        let folder = Path::new(page).parent().expect("a page is in a folder");
        let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        for link in links {
            let path = link.split('#').next().unwrap_or(link);
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let target = root().join(folder).join(path);
            assert!(target.exists(), "{page}: {link} leads nowhere");
        }
    }
}

/// The row of every case of the semantics table names at least one check file.
#[test]
fn every_row_of_the_semantics_page_names_its_checks() {
    let page = read("docs/semantics.md");
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| case") && !line.starts_with("|---")).collect();
    assert!(rows.len() >= 30, "the table has {} rows", rows.len());
    for row in rows {
        assert!(row.contains("](../checks/"), "no check file in the row: {row}");
    }
}

/// Blocks of text-form code in the pages are programs or say that they are not.
#[test]
fn programs_in_the_pages_parse_and_validate() {
    let mut programs = 0;
    // The page of error codes shows what is wrong; its programs are run by the tests of the command.
    for page in pages().iter().filter(|page| *page != "docs/errors.md") {
        let text = read(page);
        for block in text.split("```vyre\n").skip(1) {
            let code = block.split("```").next().unwrap_or(block);
            let program = vyre::text::parse(page, code).unwrap_or_else(|report| panic!("{page}:\n{report}"));
            if let Err(report) = program.validated() {
                panic!("{page}:\n{report}");
            }
            programs += 1;
        }
    }
    assert!(programs >= 2, "the pages show {programs} programs");
}
