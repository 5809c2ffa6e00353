//! Graphs.

use crate::template::Template;
use vyre_foundation::ir::Program;

static BFS_STEP: Template = Template::new(include_str!("../kernels/bfs_step.vyre"));

/// One step of a breadth-first search: the vertices not seen before that an edge leads to from the frontier.
///
/// A set of vertices is bits: that of vertex v is bit v % 32 of word v / 32. Edges to vertices that there are not, or that the sets have
/// no bit for, lead nowhere, and so do edges past the end of `targets`.
///
/// | buffer | | |
/// |---|---|---|
/// | `offsets` @0 | read u32 | of vertex v: its edges are `offsets[v]..offsets[v + 1]`; one more than there are vertices |
/// | `targets` @1 | read u32 | where the edges lead |
/// | `frontier` @2 | read u32 | the set that the step begins at |
/// | `seen` @3 | read u32 | the set of those not to be reached again |
/// | `next` @4 | output u32 | as long as `frontier` |
///
/// Launch: an invocation for each vertex. An atomic for each edge that leads to a vertex not seen before.
#[must_use]
pub fn bfs_step(workgroup: [u32; 3]) -> Program {
    BFS_STEP.program(workgroup, &[])
}

/// What [`bfs_step`] gives, from the side of those that are reached.
#[must_use]
pub fn bfs_step_on_cpu(offsets: &[u32], targets: &[u32], frontier: &[u32], seen: &[u32]) -> Vec<u32> {
    let has = |set: &[u32], vertex: usize| set.get(vertex / 32).is_some_and(|word| word >> (vertex % 32) & 1 == 1);
    let vertices = offsets.len().saturating_sub(1);
    let mut reached = vec![false; vertices];
    for (_, edges) in offsets.windows(2).enumerate().filter(|(vertex, _)| has(frontier, *vertex)) {
        let edges = edges[0] as usize..(edges[1] as usize).min(targets.len());
        for target in targets.get(edges).unwrap_or_default() {
            if let Some(reached) = reached.get_mut(*target as usize) {
                *reached = true;
            }
        }
    }
    let is_next = |vertex: usize| vertex / 32 < seen.len() && !has(seen, vertex) && reached.get(vertex) == Some(&true);
    (0..frontier.len()).map(|word| (0..32).map(|bit| u32::from(is_next(word * 32 + bit)) << bit).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_out_by_hand() {
        // 0 leads to 1 and 2, 1 to 2 and 3, 2 to 0 and to a vertex that there is not.
        let (offsets, targets) = ([0, 2, 4, 6, 6], [1, 2, 2, 3, 0, 9]);
        assert_eq!(bfs_step_on_cpu(&offsets, &targets, &[0b0001], &[0b0001]), [0b0110]);
        assert_eq!(bfs_step_on_cpu(&offsets, &targets, &[0b0110], &[0b0111]), [0b1000]);
        assert_eq!(bfs_step_on_cpu(&offsets, &targets, &[0b1000], &[0b1111]), [0]);
    }
}
