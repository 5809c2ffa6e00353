//! What people read.

use super::super::encode::encode;
use super::super::lir::{Base, Cond, G2, GSrc, Inst, Label, LoadKind, Mem, Src, StoreKind, V3, Width};
use super::super::listing::listing;
use super::Program;

#[test]
fn statements_stand_above_their_code() {
    let mut program = Program { pool: (0..64).collect(), labels: 3, ..Program::default() };
    let (counter, v) = (program.g(), program.v());
    let constant = Src::Mem(Mem { base: Base::Pool, index: None, disp: 32 });
    program.code = vec![
        Inst::Mark(1),
        Inst::Load { kind: LoadKind::Full, d: v, from: Mem::context(64) },
        Inst::GImm { d: counter, imm: 10 },
        Inst::LoopBegin,
        Inst::Label(Label(0)),
        Inst::Mark(2),
        Inst::V3 { op: V3::vpaddd, d: v, a: v, b: constant },
        Inst::Mark(2),
        Inst::G2 { op: G2::sub, width: Width::W32, d: counter, a: counter, b: GSrc::Imm(1) },
        Inst::JumpIf { cond: Cond::NotEqual, width: Width::W32, a: counter, b: GSrc::Imm(0), to: Label(0) },
        Inst::LoopEnd,
        Inst::Mark(3),
        Inst::Mark(4),
        Inst::Store { kind: StoreKind::Full, to: Mem::context(64), v },
        Inst::JumpIf { cond: Cond::Less, width: Width::W32, a: counter, b: GSrc::Imm(0), to: Label(1) },
        Inst::ColdBegin,
        Inst::Label(Label(1)),
        Inst::Zero { d: v },
        Inst::Jump(Label(2)),
        Inst::ColdEnd,
        Inst::Label(Label(2)),
        Inst::Mark(5),
        Inst::Return,
    ];
    let allocation = program.allocate();
    let encoded = encode(&program.code, program.labels, 0, &program.pool, &allocation);
    let text = listing(&encoded, |mark| (mark != 3).then(|| format!("statement {mark}")));
    let body = text.split_once("; statement 1\n").unwrap().1;
    assert_eq!(
        format!("\n{}", body.lines().take(11).collect::<Vec<_>>().join("\n")),
        "
  00020  c4 c1 7e 6f 47 40              vmovdqu ymm0, [r15+40h]
  00026  bb 0a 00 00 00                 mov ebx, 0Ah
  0002b  66 0f 1f 84 00 00 00 00 00     nop word [rax+rax]
  00034  66 0f 1f 84 00 00 00 00 00     nop word [rax+rax]
  0003d  0f 1f 00                       nop dword [rax]
; statement 2
l0:
  00040  c5 fd fe 05 58 00 00 00        vpaddd ymm0, ymm0, [rel c20]
  00048  83 eb 01                       sub ebx, 1
  0004b  75 f3                          jne short l0
; statement 4"
    );
    assert!(
        text.ends_with(
            "\
; constants
  c0       03020100 07060504 0b0a0908 0f0e0d0c 13121110 17161514 1b1a1918 1f1e1d1c
  c20      23222120 27262524 2b2a2928 2f2e2d2c 33323130 37363534 3b3a3938 3f3e3d3c
"
        ),
        "{text}"
    );
    assert!(!text.contains("(bad)"), "{text}");
    // What is put behind the rest belongs to the statement that it comes from.
    let (before, cold) = text.split_once("; constants").unwrap().0.rsplit_once("; statement 4\n").unwrap();
    assert!(before.contains("ret\n") && cold.contains("vpxor") && cold.contains("jmp"), "{text}");
}
