//! Programs of single instructions and random ones, run as machine code and by a model of the instructions.

mod aliasing;
mod execution;
mod floats;
mod forms;
mod listings;
mod model;
mod random;
mod vectors;

use super::alloc::{Allocation, allocate};
use super::constants::fold_constants;
use super::encode::encode;
use super::fold::fold_loads;
use super::lir::Inst;
use super::memory::CodeMemory;
use super::order::reorder;
use super::reg::{G, V};
use model::Model;

/// Code with what belongs to it.
#[derive(Clone, Default)]
pub(crate) struct Program {
    pub code: Vec<Inst>,
    pub general: u32,
    pub vectors: u32,
    pub labels: u32,
    pub scratch: usize,
    pub pool: Vec<u8>,
}

impl Program {
    fn g(&mut self) -> G {
        self.general += 1;
        G(self.general - 1)
    }

    fn v(&mut self) -> V {
        self.vectors += 1;
        V(self.vectors - 1)
    }

    /// Finds places, and changes the code as allocation likes it.
    fn allocate(&mut self) -> Allocation {
        allocate(&mut self.code, self.general, self.vectors, None)
    }

    fn assemble(&self, allocation: &Allocation) -> CodeMemory {
        let encoded = encode(&self.code, self.labels, self.scratch, &self.pool, allocation);
        CodeMemory::new(&encoded.bytes).unwrap()
    }

    /// As [`Self::run`], with places of allocation, each with and without the passes before it. The model runs the code as it was
    /// before. The first that differ, or the last.
    fn run_allocated(&self, context: &mut Context) -> [Vec<u8>; 2] {
        let before = context.bytes().to_vec();
        let mut results = [Vec::new(), Vec::new()];
        for (folds, orders) in [(false, false), (true, false), (false, true), (true, true)] {
            context.bytes().copy_from_slice(&before);
            let mut allocated = self.clone();
            if folds {
                fold_constants(&mut allocated.code, self.general);
                fold_loads(&mut allocated.code, self.vectors);
            }
            if orders {
                reorder(&mut allocated.code, self.general, self.vectors);
            }
            let allocation = allocated.allocate();
            results = self.compare(&allocated.assemble(&allocation), context);
            if results[0] != results[1] {
                break;
            }
        }
        results
    }

    /// Runs it as machine code, and then by the model on the same memory as it was before; the bytes that each left there.
    fn run(&self, allocation: &Allocation, context: &mut Context) -> [Vec<u8>; 2] {
        self.compare(&self.assemble(allocation), context)
    }

    fn compare(&self, code: &CodeMemory, context: &mut Context) -> [Vec<u8>; 2] {
        let before = context.bytes().to_vec();
        call(code, context.address());
        let after = context.bytes().to_vec();
        context.bytes().copy_from_slice(&before);
        Model::new(self, context.address(), context.bytes().len()).run();
        [after, context.bytes().to_vec()]
    }
}

/// Calls code with a context.
fn call(code: &CodeMemory, context: *mut u8) {
    let features = [
        is_x86_feature_detected!("avx2"),
        is_x86_feature_detected!("fma"),
        is_x86_feature_detected!("bmi1"),
        is_x86_feature_detected!("bmi2"),
        is_x86_feature_detected!("f16c"),
        is_x86_feature_detected!("popcnt"),
    ];
    assert_eq!(features, [true; 6], "this CPU cannot run the code that is tested: AVX2, FMA, BMI1, BMI2, F16C, POPCNT");
    // SAFETY: code of the encoder is a function of this type that keeps to the memory which its instructions name.
    let function: extern "sysv64" fn(*mut u8) = unsafe { std::mem::transmute(code.entry()) };
    function(context);
}

/// Memory at a multiple of 32.
struct Context(Vec<[u64; 4]>, usize);

impl Context {
    fn new(len: usize, random: &mut Random) -> Context {
        let lines = len.div_ceil(32) + 1;
        let memory: Vec<[u64; 4]> = (0..lines).map(|_| std::array::from_fn(|_| random.number())).collect();
        let address = memory.as_ptr() as usize;
        Context(memory, address.next_multiple_of(32) - address)
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = (self.0.len() - 1) * 32;
        // SAFETY: plain numbers are bytes, and all of these belong to the vector.
        unsafe { std::slice::from_raw_parts_mut(self.address(), len) }
    }

    fn address(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast::<u8>().wrapping_add(self.1)
    }
}

/// Random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
