//! Words of other languages, and what to write here: one table for the parser and the validator.
//!
//! A person who comes from WGSL, GLSL, HLSL, CUDA, OpenCL, Metal, Rust, C or Python writes what they know. Each such word is told once,
//! with what to write instead. What such words begin, such as a loop or the head of a function, is read in
//! [`super::constructs`].

/// What stands for something here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Instead {
    /// This word, in the place of the other.
    Word(&'static str),
    /// Something else, which is described.
    Help(&'static str),
}

use Instead::{Help, Word};

const NO_TRANSCENDENTAL: &str =
    "it is not among the functions that are correctly rounded: exp, exp2, log, log2, sin, cos, tan, tanh, atan, pow, sqrt, rsqrt";
const NO_VECTOR_MATH: &str = "vectors have no arithmetic: write it for each component";
const ATOMIC: &str = "an atomic is a statement with a buffer and an index: `let old = atomic.add(buf, i, v)`";
const CAS: &str =
    "an atomic is a statement with a buffer and an index: `let old = atomic.compare_exchange(buf, i, expected, new)`";
const SUBGROUP: &str = "a subgroup operation is a statement, and the program declares `subgroup 32`: `let sum = subgroup.add(x)`";
const BARRIER: &str = "write `barrier`, without parentheses; it orders workgroup memory and buffers";
const FENCE: &str = "`barrier` orders memory within a workgroup, `barrier.grid` between workgroups; there is no fence alone";
const BITS: &str = "the same bits as another type: `bitcast<u32>(x)`, `bitcast<f32>(x)`";
const LEN: &str = "the number of elements of a buffer is `len(x)`";
const TRACE: &str = "nothing is printed by a kernel: `vyre run --trace X,Y,Z` shows every value of one invocation";

/// What the function of another language is here.
pub(crate) fn function(word: &str) -> Option<Instead> {
    Some(match word {
        "clamp" => Help("write `min(max(x, low), high)`"),
        "saturate" => Help("write `min(max(x, 0.0), 1.0)`"),
        "mix" | "lerp" => Help("write `a + (b - a) * t`, or `fma(b - a, t, a)`"),
        "step" => Help("write `select(x < edge, 0.0, 1.0)`"),
        "smoothstep" => Help("write `t * t * (3.0 - 2.0 * t)` with `t` clamped by `min` and `max`"),
        "radians" | "degrees" => Help("multiply by the factor"),
        "dot" | "cross" | "length" | "distance" | "normalize" | "reflect" | "matmul" | "transpose" => Help(NO_VECTOR_MATH),
        "mad" | "madd" | "fmaf" | "muladd" | "mul_add" => Word("fma"),
        "fabs" | "fabsf" | "iabs" => Word("abs"),
        "fmin" | "fminf" | "minimum" => Word("min"),
        "fmax" | "fmaxf" | "maximum" => Word("max"),
        "sqrtf" | "native_sqrt" => Word("sqrt"),
        "rsqrtf" | "inversesqrt" | "inverseSqrt" | "native_rsqrt" => Word("rsqrt"),
        "sinf" | "native_sin" | "__sinf" => Word("sin"),
        "cosf" | "native_cos" | "__cosf" => Word("cos"),
        "tanf" => Word("tan"),
        "tanhf" => Word("tanh"),
        "atanf" => Word("atan"),
        "expf" | "native_exp" | "__expf" => Word("exp"),
        "exp2f" => Word("exp2"),
        "logf" | "ln" | "native_log" | "__logf" => Word("log"),
        "log2f" => Word("log2"),
        "powf" | "powi" | "native_powr" => Word("pow"),
        "floorf" => Word("floor"),
        "ceilf" => Word("ceil"),
        "truncf" => Word("trunc"),
        "rint" | "roundf" | "nearbyint" | "roundEven" => Word("round"),
        "frac" => Word("fract"),
        "isnan" | "isNan" | "isNaN" => Word("is_nan"),
        "isinf" | "isInf" => Word("is_inf"),
        "signum" => Word("sign"),
        "atan2" | "asin" | "acos" | "sinh" | "cosh" | "asinh" | "acosh" | "atanh" | "log10" | "exp10" | "log1p" | "expm1"
        | "cbrt" | "hypot" | "erf" | "tgamma" | "lgamma" => Help(NO_TRANSCENDENTAL),
        "fmod" | "mod" | "modf" | "remainder" => Help("write `a % b`: the remainder with the sign of `a`"),
        "div" | "floordiv" => Help("write `a / b`"),
        "ldexp" => Help("multiply by `exp2(n)`"),
        "popc" | "__popc" | "bitCount" | "countOneBits" | "countbits" | "count_ones" => Word("popcount"),
        "__clz" | "countLeadingZeros" | "leading_zeros" => Word("clz"),
        "__ctz" | "countTrailingZeros" | "trailing_zeros" | "findLSB" | "firstTrailingBit" => Word("ctz"),
        "__ffs" => Help("write `ctz(x) + 1`"),
        "findMSB" | "firstLeadingBit" | "firstbithigh" => Help("write `31 - clz(x)`"),
        "__brev" | "reverseBits" | "reversebits" | "bitfieldReverse" => Word("reverse_bits"),
        "rotate" | "rotate_left" => Word("rotl"),
        "rotate_right" => Word("rotr"),
        "mul_hi" | "__umulhi" | "__mulhi" => Word("mulhi"),
        "absdiff" => Word("abs_diff"),
        "saturating_add" | "add_sat" => Word("sat_add"),
        "saturating_sub" | "sub_sat" => Word("sat_sub"),
        "wrapping_add" => Help("write `a + b`: integers wrap"),
        "wrapping_mul" => Help("write `a * b`: integers wrap"),
        "ternary" | "iff" | "ifelse" | "where" => Help("write `select(condition, a, b)`"),
        "arrayLength" | "length_of" | "size" | "sizeof" | "len_of" => Help(LEN),
        "as_uint" | "as_int" | "as_float" | "asuint" | "asint" | "asfloat" | "floatBitsToUint" | "floatBitsToInt"
        | "uintBitsToFloat" | "intBitsToFloat" | "__float_as_uint" | "__uint_as_float" | "__float_as_int" | "__int_as_float"
        | "as_type" | "to_bits" | "from_bits" | "transmute" | "reinterpret_cast" => Help(BITS),
        "static_cast" | "convert" | "cast" => Help("convert with the name of the type: `f32(x)`"),
        "get_global_id" => Help("write `gid.x`, `gid.y` or `gid.z`"),
        "get_local_id" => Help("write `lid.x`, `lid.y` or `lid.z`"),
        "get_group_id" => Help("write `wid.x`, `wid.y` or `wid.z`"),
        "get_global_size" => Help("write `gid_count.x`, `gid_count.y` or `gid_count.z`"),
        "get_local_size" => Help("write `lid_count.x`, `lid_count.y` or `lid_count.z`"),
        "get_num_groups" => Help("write `wid_count.x`, `wid_count.y` or `wid_count.z`"),
        "program_id" => Help("write `wid.x`"),
        "printf" | "print" | "println" | "debugPrintfEXT" => Help(TRACE),
        "assert" | "panic" | "abort" | "unreachable" => {
            Help("end the invocation with `trap(7)` inside an `if`; the dispatch is then an error")
        }
        "rand" | "random" => Help("there are no random numbers: pass a seed and hash it with `gid.x`"),
        "dpdx" | "dpdy" | "dFdx" | "dFdy" | "fwidth" | "texture" | "textureSample" | "textureLoad" | "imageLoad"
        | "imageStore" => Help("there are no textures and no derivatives: data are in buffers"),
        _ if is_barrier(word) => Help(BARRIER),
        "threadfence"
        | "__threadfence"
        | "__threadfence_block"
        | "memoryBarrier"
        | "memoryBarrierShared"
        | "memoryBarrierBuffer"
        | "mem_fence"
        | "DeviceMemoryBarrier"
        | "__syncwarp" => Help(FENCE),
        "atomicCompareExchangeWeak"
        | "atomicCompSwap"
        | "atomicCAS"
        | "atomic_cmpxchg"
        | "InterlockedCompareExchange"
        | "atomic_compare_exchange_weak_explicit" => Help(CAS),
        _ if word.starts_with("atomic") || word.starts_with("Interlocked") || word.starts_with("atom_") => Help(ATOMIC),
        _ if word.starts_with("subgroup")
            || word.starts_with("Wave")
            || word.starts_with("simd_")
            || word.starts_with("sub_group")
            || word.starts_with("plane_") =>
        {
            Help(SUBGROUP)
        }
        "__shfl_sync" | "__shfl_xor_sync" | "__shfl_up_sync" | "__shfl_down_sync" | "__ballot_sync" | "__any_sync"
        | "__all_sync" | "__reduce_add_sync" | "quadBroadcast" => Help(SUBGROUP),
        _ => match (type_word(word), vector(word)) {
            (_, Some(_)) => Word("vec"),
            (Some(scalar), None) if vyre_spec::Scalar::ALL.iter().any(|known| known.name() == scalar) => Word(scalar),
            (Some(_), None) => Help("values are converted to small types when they are stored to a buffer of one"),
            (None, None) => return None,
        },
    })
}

/// Whether the function of another language waits for the workgroup.
fn is_barrier(word: &str) -> bool {
    matches!(
        word,
        "workgroupBarrier"
            | "storageBarrier"
            | "textureBarrier"
            | "__syncthreads"
            | "syncthreads"
            | "GroupMemoryBarrierWithGroupSync"
            | "AllMemoryBarrierWithGroupSync"
            | "threadgroup_barrier"
            | "work_group_barrier"
            | "workgroup_barrier"
            | "sync_units"
            | "sync_cube"
            | "debug_barrier"
            | "memoryBarrierWithGroupSync"
    )
}

/// What an id or a constant of another language is here, with what it is taken along: `threadIdx.x`, `gl_GlobalInvocationID.y`.
pub(crate) fn value(word: &str) -> Option<Instead> {
    Some(match word {
        "global_id"
        | "global_invocation_id"
        | "gl_GlobalInvocationID"
        | "dispatchThreadID"
        | "DTid"
        | "thread_position_in_grid"
        | "invocation_id"
        | "globalId"
        | "SV_DispatchThreadID" => Word("gid"),
        "local_id"
        | "local_invocation_id"
        | "gl_LocalInvocationID"
        | "threadIdx"
        | "groupThreadID"
        | "GTid"
        | "thread_position_in_threadgroup"
        | "localId"
        | "SV_GroupThreadID" => Word("lid"),
        "workgroup_id"
        | "gl_WorkGroupID"
        | "blockIdx"
        | "groupID"
        | "Gid"
        | "threadgroup_position_in_grid"
        | "group_id"
        | "SV_GroupID" => Word("wid"),
        "num_workgroups" | "gl_NumWorkGroups" | "gridDim" | "threadgroups_per_grid" => Word("wid_count"),
        "workgroup_size" | "gl_WorkGroupSize" | "blockDim" | "threads_per_threadgroup" => Word("lid_count"),
        "ABSOLUTE_POS" | "ABSOLUTE_POS_X" => Word("gid.x"),
        "UNIT_POS" | "UNIT_POS_X" | "local_invocation_index" | "gl_LocalInvocationIndex" => {
            Help("write `lid.x`; in two dimensions `lid.y * lid_count.x + lid.x`")
        }
        "CUBE_POS" | "CUBE_POS_X" => Word("wid.x"),
        "CUBE_DIM" | "CUBE_DIM_X" => Word("lid_count.x"),
        "warpSize" | "gl_SubgroupSize" | "subgroup_size" | "PLANE_DIM" => Word("subgroup.size"),
        "subgroup_invocation_id" | "gl_SubgroupInvocationID" | "laneId" | "lane_id" | "UNIT_POS_PLANE" => Word("subgroup.lane"),
        "INFINITY" | "Infinity" | "HUGE_VALF" | "infinity" => Word("inf"),
        "NAN" | "NaN" => Word("nan"),
        "True" | "TRUE" => Word("true"),
        "False" | "FALSE" => Word("false"),
        "M_PI" | "M_PI_F" | "PI" | "pi" => Word("3.14159265"),
        "FLT_MAX" => Word("3.40282347e38"),
        "FLT_EPSILON" => Word("1.1920929e-7"),
        "UINT_MAX" | "U32_MAX" => Word("0xffff_ffff"),
        "INT_MAX" => Word("2147483647i"),
        "None" | "null" | "nullptr" | "NULL" | "undefined" => {
            Help("there is no such value: every variable has a number or a bool")
        }
        _ => return None,
    })
}

/// What a word of another language begins where a statement or a declaration stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begins {
    /// A variable: `var x = 1`.
    Variable,
    /// Memory of the workgroup: `shared float tile[64];`.
    Workgroup,
    /// A loop without bounds.
    Loop,
    /// A choice among values.
    Switch,
    /// A function.
    Function,
    /// A type with fields or names.
    Type,
    /// Something that is taken from elsewhere or switched on.
    Import,
    /// A buffer, as shading languages declare it.
    Buffer,
    /// A constant that the host can change.
    Constant,
    /// Another branch of an `if`.
    ElseIf,
    /// Nothing, and the help says what to do about it.
    Nothing(&'static str),
}

/// What the word begins.
pub(crate) fn begins(word: &str) -> Option<Begins> {
    Some(match word {
        "var" | "auto" | "val" | "mut" | "final" | "volatile" | "register" | "static" | "constexpr" | "private" | "__private" => {
            Begins::Variable
        }
        "shared" | "groupshared" | "__shared__" | "__local" | "local" | "threadgroup" => Begins::Workgroup,
        "while" | "loop" | "do" | "until" | "repeat" | "forever" | "foreach" => Begins::Loop,
        "switch" | "match" | "case" => Begins::Switch,
        "fn" | "def" | "function" | "func" | "void" | "kernel" | "__kernel" | "__global__" | "__device__" | "__host__"
        | "inline" | "extern" | "pub" | "proc" | "template" | "unsafe" | "async" => Begins::Function,
        "struct" | "enum" | "class" | "union" | "interface" | "impl" | "trait" | "type" | "typedef" | "namespace" | "mod" => {
            Begins::Type
        }
        "import" | "use" | "using" | "from" | "require" | "requires" | "enable" | "diagnostic" | "precision" | "include" => {
            Begins::Import
        }
        "layout"
        | "uniform"
        | "StructuredBuffer"
        | "RWStructuredBuffer"
        | "ByteAddressBuffer"
        | "RWByteAddressBuffer"
        | "Buffer"
        | "RWBuffer"
        | "cbuffer"
        | "ConstantBuffer"
        | "device"
        | "constant"
        | "__constant"
        | "__constant__"
        | "__global" => Begins::Buffer,
        "override" => Begins::Constant,
        "elif" | "elsif" | "elseif" => Begins::ElseIf,
        "pass" => Begins::Nothing("leave it out: a block may be empty"),
        "discard" | "exit" | "stop" => Begins::Nothing("an invocation ends with `return`"),
        "goto" | "try" | "throw" | "catch" | "yield" | "await" | "defer" => {
            Begins::Nothing("control is `if`, `for`, `break`, `continue`, `return` and `trap(7)`")
        }
        _ => return None,
    })
}

/// The word of the language for one of another, where it can stand.
pub(crate) fn word(theirs: &str) -> Option<&'static str> {
    Some(match theirs {
        "readonly" => "read",
        "writeonly" => "output",
        _ => match begins(theirs) {
            Some(Begins::Variable) => "let",
            Some(Begins::Workgroup) => "workgroup",
            Some(_) | None => return type_word(theirs),
        },
    })
}

/// The type that a word of another language means.
fn type_word(word: &str) -> Option<&'static str> {
    Some(match word {
        "uint" | "unsigned" | "uint32_t" | "uint32" | "UInt32" | "dword" | "usize" | "size_t" => "u32",
        "int" | "signed" | "int32_t" | "int32" | "Int32" | "isize" => "i32",
        "float" | "float32" | "Float32" | "fp32" => "f32",
        "double" | "float64" | "Float64" => "f64",
        "half" | "float16" | "float16_t" | "fp16" => "f16",
        "bfloat16" | "__nv_bfloat16" => "bf16",
        "boolean" | "Bool" | "_Bool" => "bool",
        "ulong" | "uint64_t" | "uint64" => "u64",
        "long" | "int64_t" | "int64" => "i64",
        "uchar" | "uint8_t" | "uint8" | "byte" => "u8",
        "char" | "int8_t" | "int8" => "i8",
        "ushort" | "uint16_t" | "uint16" => "u16",
        "short" | "int16_t" | "int16" => "i16",
        _ => return None,
    })
}

/// The vector type that a word of another language means, such as `vec4f`, `float4` or `uvec2`: its components and how many.
fn vector(word: &str) -> Option<(&'static str, u8)> {
    let count = |digit: &str| digit.parse().ok().filter(|count| (2..=4).contains(count));
    let spelled = |rest: &str| match rest {
        "f" => Some("f32"),
        "u" => Some("u32"),
        "i" => Some("i32"),
        _ => None,
    };
    if let Some(rest) = word.strip_prefix("vec") {
        let (digit, suffix) = rest.split_at_checked(1)?;
        return Some((if suffix.is_empty() { "f32" } else { spelled(suffix)? }, count(digit)?));
    }
    for (prefix, scalar) in [("float", "f32"), ("uint", "u32"), ("int", "i32"), ("uvec", "u32"), ("ivec", "i32")] {
        if let Some(count) = word.strip_prefix(prefix).and_then(count) {
            return Some((scalar, count));
        }
    }
    None
}

/// Whether the word is a vector type of another language, such as `float4`.
pub(crate) fn is_vector(word: &str) -> bool {
    vector(word).is_some()
}

/// The type that a word of another language means, as it is written here.
pub(crate) fn data_type(word: &str) -> Option<String> {
    type_word(word).map(String::from).or_else(|| vector(word).map(|(scalar, count)| format!("vec{count}<{scalar}>")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::classify;

    /// What is suggested is in the language: a word that is a function, an id, a number or a type.
    #[test]
    fn what_is_suggested_is_there() {
        let functions: Vec<&str> =
            classify::functions().chain(vyre_spec::Scalar::ALL.into_iter().map(vyre_spec::Scalar::name)).collect();
        for word in
            ["mad", "fabs", "isnan", "uint", "float", "vec4f", "float4", "countOneBits", "__umulhi", "saturating_add", "rotate"]
        {
            match function(word) {
                Some(Word(meant)) => assert!(functions.contains(&meant), "{word}: {meant}"),
                other => panic!("{word}: {other:?}"),
            }
        }
        for word in ["threadIdx", "gl_GlobalInvocationID", "warpSize", "ABSOLUTE_POS", "num_workgroups"] {
            match value(word) {
                Some(Word(meant)) => {
                    assert!(vyre_spec::Builtin::ALL.iter().any(|builtin| builtin.to_string().starts_with(meant)), "{meant}")
                }
                other => panic!("{word}: {other:?}"),
            }
        }
        assert_eq!(vector("vec3"), Some(("f32", 3)));
        assert_eq!((vector("uvec2"), vector("int4"), vector("vec2u")), (Some(("u32", 2)), Some(("i32", 4)), Some(("u32", 2))));
        assert_eq!((vector("vec"), vector("vec5"), vector("vec2x"), vector("float")), (None, None, None, None));
    }

    /// The mistakes of the check files, each with what to write.
    #[test]
    fn every_foreign_word_is_told_with_what_to_write() {
        for (text, count) in [
            (include_str!("../../../../checks/validate/foreign-functions.vyre"), 56),
            (include_str!("../../../../checks/validate/foreign-ids.vyre"), 27),
            (include_str!("../../../../checks/validate/foreign-types.vyre"), 15),
        ] {
            let report = match crate::text::parse("foreign.vyre", text) {
                Ok(program) => program.validated().map(|_| ()).expect_err("every line has a mistake").clone(),
                Err(report) => report,
            };
            assert_eq!(report.diagnostics.len(), count, "{report}");
            for mistake in &report.diagnostics {
                assert!(mistake.help.as_ref().is_some_and(|help| !help.starts_with("did you mean")), "{mistake:?}");
            }
        }
    }

    /// No word of the language is foreign to it.
    #[test]
    fn own_words_are_not_foreign() {
        for word in classify::functions() {
            assert_eq!(function(word), None, "{word}");
        }
        for ty in vyre_spec::DataType::KERNEL_SCALARS {
            assert_eq!(type_word(&ty.to_string()), None, "{ty}");
        }
    }
}
