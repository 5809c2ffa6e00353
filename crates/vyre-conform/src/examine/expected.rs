//! What a dispatch must give: from the spec's own Rust, and from the plain interpreter.

use super::FindingKind;
use super::layout::{Dispatch, Target, part};
use crate::spec::{Columns, frame};
use std::collections::BTreeMap;
use vyre_foundation::case::Case;
use vyre_smith::subjects::Reference;
use vyre_worker::{Failure, Outputs, caught};

/// One case in so many is given to the reference too.
const REFERRED: usize = 100;

/// What is expected of a dispatch.
pub(super) struct Expected {
    /// The bytes of each output. Those of cases with a problem are zero.
    pub columns: Vec<Vec<u8>>,
    /// By case: why nothing is expected of it, or nothing that is agreed on.
    pub problems: BTreeMap<usize, (FindingKind, String)>,
    /// What `cpu_fn` gave for cases whose result cannot be used.
    odd: BTreeMap<usize, Vec<u8>>,
    /// Bytes that a case has of each output.
    sizes: Vec<usize>,
    /// Cases that the reference has run.
    pub referred: u64,
    /// How the dispatch has to end instead; the first column then has this in words.
    pub trap: Option<Failure>,
}

impl Expected {
    /// Nothing is known about a dispatch of cases side by side.
    pub fn unknown(target: &Target<'_>, dispatch: &Dispatch) -> Expected {
        let sizes = target.layout.outputs.clone().unwrap_or_default();
        let columns = sizes.iter().map(|size| vec![0; size * dispatch.cases]).collect();
        Expected { columns, problems: BTreeMap::new(), odd: BTreeMap::new(), sizes, referred: 0, trap: None }
    }

    /// What a case has of columns like these.
    pub fn part(&self, columns: &[Vec<u8>], case: usize) -> Vec<u8> {
        part(columns, &self.sizes, case)
    }

    /// What is expected of a case; `None` if that is not known.
    pub fn of_case(&self, case: usize) -> Option<Vec<u8>> {
        match (self.odd.get(&case), self.problems.get(&case)) {
            (Some(odd), _) => Some(odd.clone()),
            (None, Some((FindingKind::Case, _))) => None,
            (None, _) => Some(self.part(&self.columns, case)),
        }
    }

    /// A trap is expected, and no outputs.
    fn trapped(&mut self, trap: Failure) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.sizes.fill(0);
        if let (Some(column), Some(size)) = (self.columns.first_mut(), self.sizes.first_mut()) {
            *column = trap.to_string().into_bytes();
            *size = column.len();
        }
        self.trap = Some(trap);
    }

    fn problem(&mut self, case: usize, kind: FindingKind, problem: String) {
        self.problems.entry(case).or_insert((kind, problem));
    }
}

/// What is expected of a dispatch.
pub(super) fn of(target: &Target<'_>, dispatch: &Dispatch, salt: u64, most: usize) -> Expected {
    let planned = target.case(dispatch);
    let sizes = match (&target.layout.outputs, &planned) {
        (Some(sizes), _) => sizes.clone(),
        (None, Ok(case)) => output_bytes(case),
        (None, Err(_)) => vec![0; target.spec.signature.outputs.len()],
    };
    let columns = sizes.iter().map(|size| vec![0; size * dispatch.cases]).collect();
    let mut expected = Expected { columns, problems: BTreeMap::new(), odd: BTreeMap::new(), sizes, referred: 0, trap: None };
    let Ok(case) = planned else { return expected };
    match target.trap(dispatch) {
        Ok(None) => {}
        Ok(Some(trap)) => {
            expected.trapped(trap);
            compare_with_reference(target, dispatch, salt, &mut expected);
            return expected;
        }
        Err(problem) => {
            expected.problem(0, FindingKind::Case, problem);
            return expected;
        }
    }
    if !target.spec.has_cpu() {
        match refer(&case) {
            Ok(outputs) => {
                expected.referred = dispatch.cases as u64;
                expected.columns = outputs;
            }
            Err(failure) => {
                let why = format!("the reference: {failure}");
                (0..dispatch.cases).for_each(|n| expected.problem(n, FindingKind::Case, why.clone()));
            }
        }
        return expected;
    }
    let whole: usize = expected.sizes.iter().sum();
    let in_bulk = whole <= most && by_batch(target, dispatch, &mut expected);
    if !in_bulk {
        one_by_one(target, dispatch, most, &mut expected);
    }
    compare_with_reference(target, dispatch, salt, &mut expected);
    expected
}

/// Bytes of each output of a case that can be planned.
pub(crate) fn output_bytes(case: &Case) -> Vec<usize> {
    let Ok(launch) = case.plan() else { unreachable!("it was planned before") };
    case.program.interface().outputs.iter().map(|i| launch.bytes[*i] as usize).collect()
}

/// All cases at once. Gives false if the spec has no such function, or it panicked: then cases go one by one, so that the one that
/// panics is found.
fn by_batch(target: &Target<'_>, dispatch: &Dispatch, expected: &mut Expected) -> bool {
    let Some(batch) = &target.spec.batch else { return false };
    let inputs: Vec<&[u8]> = dispatch.columns.iter().map(Vec::as_slice).collect();
    let columns = Columns { cases: dispatch.cases, workgroup: target.workgroup, inputs: &inputs };
    let mut outputs: Vec<&mut [u8]> = expected.columns.iter_mut().map(Vec::as_mut_slice).collect();
    match caught(|| batch(&columns, &mut outputs)) {
        Ok(()) => true,
        Err(said) => {
            if target.spec.cpu.is_none() {
                let problem = format!("cpu_batch panicked: {said}");
                (0..dispatch.cases).for_each(|case| expected.problem(case, FindingKind::Case, problem.clone()));
                return true;
            }
            expected.columns.iter_mut().for_each(|column| column.fill(0));
            false
        }
    }
}

fn one_by_one(target: &Target<'_>, dispatch: &Dispatch, most: usize, expected: &mut Expected) {
    let whole: usize = expected.sizes.iter().sum();
    for case in 0..dispatch.cases {
        let bytes = target.layout.case_of(dispatch, case);
        let outcome = match &target.spec.cpu {
            Some(cpu) => caught(|| cpu(&bytes)).map_err(|said| format!("cpu_fn panicked: {said}")),
            None => one_of_batch(target, dispatch, case, &expected.sizes),
        };
        match outcome {
            Err(problem) => expected.problem(case, FindingKind::Case, problem),
            Ok(result) if result.len() > most => {
                let problem = format!("cpu_fn returned {} bytes, and a result may have {most}", result.len());
                expected.odd.insert(case, result);
                expected.problem(case, FindingKind::Case, problem);
            }
            Ok(result) if result.len() != whole => {
                let problem = format!("cpu_fn returned {} bytes, and the outputs of a case have {whole}", result.len());
                expected.odd.insert(case, result);
                expected.problem(case, FindingKind::Case, problem);
            }
            Ok(result) => {
                let mut rest = result.as_slice();
                for (column, size) in expected.columns.iter_mut().zip(&expected.sizes) {
                    let (mine, others) = rest.split_at(*size);
                    column[case * size..][..*size].copy_from_slice(mine);
                    rest = others;
                }
            }
        }
    }
}

/// One case by the function for many.
fn one_of_batch(target: &Target<'_>, dispatch: &Dispatch, case: usize, sizes: &[usize]) -> Result<Vec<u8>, String> {
    let Some(batch) = &target.spec.batch else { return Err("the spec has neither cpu_fn nor cpu_batch".into()) };
    let columns: Vec<&[u8]> = match &target.layout.inputs {
        Some(inputs) => dispatch.columns.iter().zip(inputs).map(|(column, size)| &column[case * size..][..*size]).collect(),
        None => dispatch.columns.iter().map(Vec::as_slice).collect(),
    };
    let columns = Columns { cases: 1, workgroup: target.workgroup, inputs: &columns };
    let mut outputs: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
    let mut slices: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    caught(|| batch(&columns, &mut slices)).map_err(|said| format!("cpu_batch panicked: {said}"))?;
    Ok(outputs.concat())
}

/// Gives one case in a hundred to the plain interpreter, and notes where it disagrees.
fn compare_with_reference(target: &Target<'_>, dispatch: &Dispatch, salt: u64, expected: &mut Expected) {
    let count = dispatch.cases.div_ceil(REFERRED);
    let (first, sample) = match &target.layout.inputs {
        Some(sizes) => {
            let first = (mixed(salt) % (dispatch.cases - count + 1) as u64) as usize;
            let cut = |(column, size): (&Vec<u8>, &usize)| column[first * size..(first + count) * size].to_vec();
            (first, Dispatch { cases: count, columns: dispatch.columns.iter().zip(sizes).map(cut).collect() })
        }
        None => {
            // A dispatch of its own is referred by its content, so that it does not matter what it is examined together with.
            let content = blake3::hash(&frame(&dispatch.columns));
            let number = u64::from_le_bytes(*content.as_bytes().first_chunk().expect("a hash has 32 bytes"));
            if !mixed(salt ^ number).is_multiple_of(REFERRED as u64) {
                return;
            }
            (0, dispatch.clone())
        }
    };
    let Ok(case) = target.case(&sample) else { return };
    let given = match refer(&case) {
        Ok(given) => given,
        Err(failure) if Some(&failure) == expected.trap.as_ref() => {
            expected.referred = 1;
            return;
        }
        Err(failure) => return expected.problem(first, FindingKind::Disputed, format!("the reference: {failure}")),
    };
    if let Some(trap) = &expected.trap {
        let problem = format!("the suite disagrees with itself: the reference runs to the end, and {trap} is expected");
        return expected.problem(first, FindingKind::Disputed, problem);
    }
    expected.referred = count as u64;
    for n in 0..count {
        if expected.problems.contains_key(&(first + n)) {
            continue;
        }
        let (reference, cpu) = (expected.part(&given, n), expected.part(&expected.columns, first + n));
        if reference != cpu {
            let hex = |bytes: &[u8]| bytes.iter().take(64).map(|byte| format!("{byte:02x}")).collect::<String>();
            let problem =
                format!("the suite disagrees with itself: the reference gives {}, cpu_fn {}", hex(&reference), hex(&cpu));
            expected.problem(first + n, FindingKind::Disputed, problem);
        }
    }
}

/// What the plain interpreter gives.
fn refer(case: &Case) -> Result<Outputs, Failure> {
    Reference::default().expected(case)
}

/// A number whose bits all depend on all bits of another.
pub(crate) fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}
