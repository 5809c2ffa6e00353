//! More than 31 bits: buffers beyond 2³¹ bytes, and grids beyond 65,535 workgroups along an axis. What comes of them is known without
//! running anything.

use super::{Cases, Judge, Work};
use crate::plan::{Tier, profile};
use crate::space::Evidence;
use vyre_foundation::case::Case;
use vyre_foundation::config::DispatchConfig;
use vyre_foundation::ir::Program;

/// What is large.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Large {
    /// A grid; the elements of its output are its workgroups.
    Grid,
    /// A buffer that is read, of elements of so many bytes.
    Read(u32),
    /// A buffer that is written.
    Written,
}

/// Dispatches with something large in them.
pub struct LargeCases {
    large: Large,
    op: &'static str,
    program: Program,
}

/// Workgroups along each axis.
const GRIDS: [[u32; 3]; 5] = [[65_536, 1, 1], [65_539, 2, 1], [1, 65_537, 1], [2, 1, 65_537], [1 << 20, 1, 1]];

/// Bytes of a large buffer: more than a signed number of 32 bits counts.
const BYTES: u64 = (1 << 31) + 4096;

/// How many times the bytes of a large buffer a run needs: where it is made, in the device's memory and its guards, twice.
const COPIES: u64 = 6;

impl LargeCases {
    /// All that there is.
    #[must_use]
    pub fn all() -> Vec<LargeCases> {
        let grid = "workgroup 4\nbuffer out: output u32 @0\n\
             let w = (wid.z * wid_count.y + wid.y) * wid_count.x + wid.x\natomic.add(out, w, gid.x ^ (gid.y << 3) ^ (gid.z << 5))\n";
        let read = |element: &str| {
            format!(
                "workgroup 64\nbuffer a: read {element} @0\nbuffer at: read u32 @1\nbuffer out: output u32 @2\nout[gid.x] = a[at[gid.x]]\n"
            )
        };
        let written = "workgroup 64\nbuffer x: read_write u32 @0\nbuffer at: read u32 @1\nx[at[gid.x]] = gid.x + 1\n";
        let program = |text: &str| {
            let text = format!("program p {{\n{text}}}");
            vyre_foundation::text::parse("large", &text).unwrap_or_else(|report| panic!("{report}"))
        };
        vec![
            LargeCases { large: Large::Grid, op: "large.grid", program: program(grid) },
            LargeCases { large: Large::Read(1), op: "large.read:u8", program: program(&read("u8")) },
            LargeCases { large: Large::Read(4), op: "large.read:u32", program: program(&read("u32")) },
            LargeCases { large: Large::Written, op: "large.write:u32", program: program(written) },
        ]
    }

    /// Indices around the places where a number of bytes or elements passes 2³¹, and the end.
    fn indices(bytes: u32) -> Vec<u32> {
        let (length, at) = ((BYTES / u64::from(bytes)) as u32, (1 << 31) / bytes);
        let mut all =
            vec![0, 1, at - 2, at - 1, at, at + 1, at + 2, length - 2, length - 1, length, length + 1, at / 2 - 1, at / 2];
        all.extend((0..83).map(|k: u32| k.wrapping_mul(0x9E37_79B9) % length));
        let mut seen = std::collections::HashSet::new();
        all.retain(|index| seen.insert(*index));
        all
    }
}

/// What stands at a place of a large buffer.
fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Bytes of memory that are free, as far as the system says.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn of_words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn large_buffer() -> Vec<u8> {
    (0..BYTES).map(byte).collect()
}

impl Cases for LargeCases {
    fn op(&self) -> &str {
        self.op
    }

    fn space(&self) -> &str {
        "large"
    }

    fn cases(&self) -> u64 {
        match self.large {
            Large::Grid => GRIDS.len() as u64,
            Large::Read(_) | Large::Written => 1,
        }
    }

    fn evidence(&self) -> Evidence {
        Evidence::Boundary
    }

    fn profile(&self) -> String {
        // A device that is too small for it is not asked to claim anything about it.
        format!("large+{}", profile(&self.program))
    }

    fn identity(&self) -> Vec<u8> {
        self.program.fingerprint().to_vec()
    }

    fn first_tier(&self) -> Tier {
        Tier::Deep
    }

    fn lacking(&self) -> Option<String> {
        let needs = match self.large {
            Large::Grid => return None,
            Large::Read(_) => BYTES * COPIES,
            // It goes in and comes out.
            Large::Written => 2 * BYTES * COPIES,
        };
        match free_memory() {
            Some(free) if free < needs => Some(format!("it needs {} MiB of memory, and {} are free", needs >> 20, free >> 20)),
            Some(_) => None,
            None => Some("it is not known how much memory is free".into()),
        }
    }

    fn case(&self, _: u64, number: u64) -> Work {
        let mut config = DispatchConfig::default();
        let inputs = match self.large {
            Large::Grid => {
                let grid = GRIDS[number as usize];
                config.grid_override = Some(grid);
                config.output_counts.insert("out".into(), grid.iter().product());
                Vec::new()
            }
            Large::Read(bytes) => {
                let at = LargeCases::indices(bytes);
                config.grid_override = Some([(at.len() as u32).div_ceil(64), 1, 1]);
                config.output_counts.insert("out".into(), at.len() as u32);
                vec![large_buffer(), of_words(&at)]
            }
            Large::Written => {
                let at = LargeCases::indices(4);
                config.grid_override = Some([(at.len() as u32) / 64, 1, 1]);
                config.max_output_bytes = Some(2 * BYTES);
                vec![large_buffer(), of_words(&at)]
            }
        };
        Case { program: self.program.clone(), inputs, config, fuel: 1 << 40 }.into()
    }

    fn judge(&self, _: u64, number: u64) -> Judge {
        let outputs = match self.large {
            Large::Grid => {
                let [x, y, z] = GRIDS[number as usize];
                let of = |w: u32| {
                    let (a, b, c) = (w % x, w / x % y, w / x / y);
                    (4 * a..4 * a + 4).fold(0_u32, |sum, gid| sum.wrapping_add(gid ^ (b << 3) ^ (c << 5)))
                };
                of_words(&(0..x * y * z).map(of).collect::<Vec<u32>>())
            }
            Large::Read(bytes) => {
                let of = |index: u32| {
                    let from = u64::from(index) * u64::from(bytes);
                    if from + u64::from(bytes) > BYTES {
                        return 0;
                    }
                    (0..u64::from(bytes)).fold(0_u32, |word, k| word | u32::from(byte(from + k)) << (8 * k))
                };
                of_words(&LargeCases::indices(bytes).into_iter().map(of).collect::<Vec<u32>>())
            }
            Large::Written => {
                let mut x = large_buffer();
                let at = LargeCases::indices(4);
                // Only whole workgroups are launched.
                let count = at.len() / 64 * 64;
                for (i, index) in at.into_iter().take(count).enumerate() {
                    let from = u64::from(index) * 4;
                    if from + 4 <= BYTES {
                        x[from as usize..][..4].copy_from_slice(&(i as u32 + 1).to_le_bytes());
                    }
                }
                x
            }
        };
        Judge::Stated(Ok(vec![outputs]))
    }

    fn program(&self) -> Option<&Program> {
        Some(&self.program)
    }
}
