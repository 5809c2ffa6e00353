//! The time of a program that runs as several dispatches: that of all of them, or none.

use vyre_driver::grid_sync::dispatch_with_grid_sync_split_timed;
use vyre_driver::{BackendError, DispatchConfig, TimedDispatchResult, VyreBackend};
use vyre_foundation::ir::Program;
use vyre_foundation::text::parse;
use vyre_reference::Options;

/// Runs on the reference, and says how long the segments took as it is told.
struct Clocks(Vec<Option<u64>>, std::sync::atomic::AtomicUsize);

impl VyreBackend for Clocks {
    fn id(&self) -> &'static str {
        "clocks"
    }

    fn dispatch(&self, program: &Program, inputs: &[Vec<u8>], config: &DispatchConfig) -> Result<Vec<Vec<u8>>, BackendError> {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let program = config.specialization.apply(program)?;
        let options = Options { launch: config.launch(), ..Options::default() };
        vyre_reference::run(&program, &inputs, &options).map_err(|error| BackendError::new(error.to_string()))
    }

    fn dispatch_borrowed_timed(
        &self,
        program: &Program,
        inputs: &[&[u8]],
        config: &DispatchConfig,
    ) -> Result<TimedDispatchResult, BackendError> {
        let outputs = self.dispatch_borrowed(program, inputs, config)?;
        let segment = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(TimedDispatchResult { outputs, wall_ns: 1, device_ns: self.0[segment], ran: None })
    }
}

#[test]
fn a_sum_of_device_times_is_given_only_if_every_part_is_known() {
    let text = "program p {
  workgroup 4
  buffer x: read_write u32[4] @0
  x[gid.x] = x[gid.x] + 1
  barrier.grid
  x[gid.x] = x[gid.x] * 2
  barrier.grid
  x[gid.x] = x[gid.x] + 1
}";
    let program = parse("p.vyre", text).unwrap_or_else(|report| panic!("{report}"));
    for (times, expected) in [
        ([Some(5), Some(7), Some(11)], Some(23)),
        ([None, Some(7), Some(11)], None),
        ([Some(5), None, Some(11)], None),
        ([Some(5), Some(7), None], None),
        ([None, None, None], None),
        ([Some(u64::MAX), Some(7), Some(11)], Some(u64::MAX)),
    ] {
        let backend = Clocks(times.to_vec(), Default::default());
        let timed = dispatch_with_grid_sync_split_timed(&backend, &program, &[&[0; 16]], &DispatchConfig::default());
        let timed = timed.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((timed.device_ns, backend.1.into_inner()), (expected, 3), "{times:?}");
        assert_eq!(timed.outputs, [[3u32, 3, 3, 3].map(u32::to_le_bytes).concat()]);
    }
}
