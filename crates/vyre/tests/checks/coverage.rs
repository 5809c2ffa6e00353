//! Whether the check files, taken together, touch everything there is: each hole is a failing test with its name.

use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::path::PathBuf;
use vyre::ir::{Access, Builtin, DataType, OpId, Scalar};
use vyre::kernel::{ExprKind, Kernel, StmtKind};
use vyre::passes::PASSES;
use vyre::spec::ErrorCode;
use vyre_conform::checks::directive::{self, Kind};

/// What no check file can provoke, and why.
const WITHOUT_FILE: [(ErrorCode, &str); 4] = [
    (ErrorCode::E0112, "needs a text of 4 GiB"),
    (ErrorCode::E0507, "only programs built by code are nested too deep: in a text it is E0107"),
    (ErrorCode::E0607, "only bytes made by code are nested too deep; tests/wire.rs has it"),
    (ErrorCode::E0714, "about values on the command line; the tests of vyre-cli have it"),
];

#[derive(Default)]
struct Seen {
    codes: BTreeSet<ErrorCode>,
    ops: BTreeSet<String>,
    others: BTreeSet<String>,
    passes: BTreeSet<String>,
}

pub fn trials(files: Vec<PathBuf>) -> Vec<Trial> {
    let of = |name: &str, holes: fn(&Seen) -> Vec<String>| {
        let files = files.clone();
        Trial::test(format!("coverage/{name}"), move || {
            let holes = holes(&look(&files)?);
            if holes.is_empty() { Ok(()) } else { Err(Failed::from(format!("no check file for:\n{}", holes.join("\n")))) }
        })
    };
    vec![
        of("every error code", |seen| {
            let exempt = WITHOUT_FILE.map(|(code, _)| code);
            // What goes wrong with devices is in the tests of vyre-driver.
            let about_devices = |code: &ErrorCode| code.name().starts_with("E08");
            let wanted = ErrorCode::ALL.iter().filter(|code| !exempt.contains(code) && !about_devices(code));
            let missing = wanted.filter(|code| !seen.codes.contains(code));
            missing.map(|code| format!("{code}: {}", code.title())).collect()
        }),
        of("every op on every type", |seen| {
            let all = OpId::all().flat_map(|op| op.info().over.iter().map(move |ty| format!("{op} {ty}")));
            all.filter(|op| !seen.ops.contains(op)).collect()
        }),
        of("every conversion", |seen| {
            let mut all = Vec::new();
            for from in Scalar::ALL {
                for to in Scalar::ALL {
                    if !(from.is_float() && to == Scalar::Bool) {
                        all.push(format!("cast {from} {to}"));
                    }
                    if from.bits() == to.bits() && from != Scalar::Bool {
                        all.push(format!("bitcast {from} {to}"));
                    }
                }
            }
            all.retain(|conversion| !seen.others.contains(conversion));
            all
        }),
        of("every builtin", |seen| {
            let all = Builtin::ALL.iter().map(|builtin| format!("builtin {builtin}"));
            all.filter(|builtin| !seen.others.contains(builtin)).collect()
        }),
        of("every element type loaded and stored", |seen| {
            let vectors = [Scalar::U32, Scalar::I32, Scalar::F32]
                .into_iter()
                .flat_map(|scalar| (2..=4).map(move |count| DataType::vector(scalar, count)));
            let all: Vec<DataType> =
                DataType::KERNEL_SCALARS.into_iter().chain([DataType::Vec2U32, DataType::Vec4U32]).chain(vectors).collect();
            let mut holes = Vec::new();
            for element in all {
                let load_only = matches!(element.storage(), vyre::spec::Storage::LoadOnly(_));
                holes.push(format!("load {element}"));
                if !load_only {
                    holes.push(format!("store {element}"));
                }
            }
            holes.retain(|hole| !seen.others.contains(hole));
            holes
        }),
        of("every pass changes something and leaves something alone", |seen| {
            let names = PASSES.iter().map(|pass| pass.name);
            let all = names.flat_map(|name| [format!("after {name}"), format!("{name} leaves it alone")]);
            all.filter(|hole| !seen.passes.contains(hole)).collect()
        }),
        of("every access mode and statement", |seen| {
            let mut all: Vec<String> = Access::ALL.iter().map(|access| format!("access {access}")).collect();
            all.extend(STATEMENTS.map(|word| format!("statement {word}")));
            all.retain(|hole| !seen.others.contains(hole));
            all
        }),
    ]
}

const STATEMENTS: [&str; 14] = [
    "let", "assign", "store", "atomic", "subgroup", "if", "loop", "break", "continue", "return", "barrier", "grid", "trap",
    "scope",
];

fn look(files: &[PathBuf]) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for path in files {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        let content = String::from_utf8_lossy(&bytes);
        let directives = directive::parse(&content).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let mut runs = false;
        for directive in &directives {
            match &directive.kind {
                Kind::Error(code, _) | Kind::Warn(code, _) | Kind::Refuse(_, code, _) | Kind::Corrupt(_, code, _) => {
                    seen.codes.insert(*code);
                }
                Kind::Trap(..) => {
                    seen.codes.insert(ErrorCode::E0713);
                    runs = true;
                }
                Kind::Checked(_, verdict) => {
                    let codes = verdict.findings.iter().filter_map(|finding| ErrorCode::from_name(finding.split(' ').next()?));
                    seen.codes.extend(codes);
                }
                Kind::Run(..) => runs = true,
                Kind::After(name, _) => {
                    seen.passes.insert(format!("after {name}"));
                }
                Kind::LeavesAlone(name) => {
                    seen.passes.insert(format!("{name} leaves it alone"));
                }
                Kind::Determinism(answer) => {
                    seen.codes.extend(answer.starts_with("unproven").then_some(ErrorCode::W0505));
                }
                Kind::Bounds(_) | Kind::Printed(_) | Kind::Formatted(_) => {}
            }
        }
        if !runs {
            continue;
        }
        if let Ok(program) = crate::parse(&bytes)
            && let Ok(validated) = program.validated()
        {
            note(validated.kernel(), &mut seen);
        }
    }
    Ok(seen)
}

fn note(kernel: &Kernel, seen: &mut Seen) {
    for buffer in &kernel.buffers {
        seen.others.insert(format!("access {}", buffer.access));
    }
    for expr in &kernel.exprs {
        match &expr.kind {
            ExprKind::Unary { op, ty, .. } => seen.ops.insert(format!("{op} {ty}")),
            ExprKind::Binary { op, ty, .. } => seen.ops.insert(format!("{op} {ty}")),
            ExprKind::Ternary { op, ty, .. } => seen.ops.insert(format!("{op} {ty}")),
            ExprKind::Cast { from, to, .. } => seen.others.insert(format!("cast {from} {to}")),
            ExprKind::Bitcast { from, to, .. } => seen.others.insert(format!("bitcast {from} {to}")),
            ExprKind::Builtin { builtin } => seen.others.insert(format!("builtin {builtin}")),
            ExprKind::Load { buffer, .. } => seen.others.insert(format!("load {}", kernel.buffer(*buffer).element)),
            ExprKind::Lit { .. }
            | ExprKind::Var { .. }
            | ExprKind::Len { .. }
            | ExprKind::Vector { .. }
            | ExprKind::Extract { .. } => false,
        };
    }
    for stmt in &kernel.stmts {
        let word = match &stmt.kind {
            StmtKind::Let { .. } => "let",
            StmtKind::Assign { .. } => "assign",
            StmtKind::Store { buffer, .. } => {
                seen.others.insert(format!("store {}", kernel.buffer(*buffer).element));
                "store"
            }
            StmtKind::Atomic { op, buffer, .. } => {
                seen.ops.insert(format!("atomic.{op} {}", kernel.buffer(*buffer).value));
                "atomic"
            }
            StmtKind::Subgroup { op, ty, .. } => {
                seen.ops.insert(format!("subgroup.{op} {ty}"));
                "subgroup"
            }
            StmtKind::If { .. } => "if",
            StmtKind::Loop { .. } => "loop",
            StmtKind::Break => "break",
            StmtKind::Continue => "continue",
            StmtKind::Return => "return",
            StmtKind::Barrier => "barrier",
            StmtKind::GridSync => "grid",
            StmtKind::Trap { .. } => "trap",
            StmtKind::Scope { .. } => "scope",
        };
        seen.others.insert(format!("statement {word}"));
    }
}
