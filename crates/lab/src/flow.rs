//! Maximum flow (Dinic, 1970), for bounds on the work that any plan could hold.

use std::collections::VecDeque;

/// A directed edge; its reverse is its neighbour in the list.
#[derive(Debug, Clone, Copy)]
struct Edge {
    to: usize,
    /// The flow that is still possible.
    rest: i64,
}

/// A network of numbered vertices.
#[derive(Debug, Clone)]
pub(crate) struct FlowNetwork {
    edges: Vec<Edge>,
    /// Edges that leave each vertex.
    leaving: Vec<Vec<usize>>,
}

impl FlowNetwork {
    /// With this many vertices, without an edge.
    pub(crate) fn new(vertices: usize) -> Self {
        Self {
            edges: Vec::new(),
            leaving: vec![Vec::new(); vertices],
        }
    }

    /// An edge that carries up to `capacity`.
    pub(crate) fn connect(&mut self, from: usize, to: usize, capacity: i64) {
        for (from, to, rest) in [(from, to, capacity.max(0)), (to, from, 0)] {
            self.leaving[from].push(self.edges.len());
            self.edges.push(Edge { to, rest });
        }
    }

    /// The most that can flow from `source` to `sink`; the capacities are used up. O(v²·e) at worst.
    pub(crate) fn maximum(&mut self, source: usize, sink: usize) -> i64 {
        let mut flow = 0;
        while let Some(levels) = self.levels(source, sink) {
            let mut next = vec![0; self.leaving.len()];
            while let pushed @ 1.. = self.push(source, sink, i64::MAX, &levels, &mut next) {
                flow += pushed;
            }
        }
        flow
    }

    /// Distances from the source over edges with something left; `None` if the sink is out of reach.
    fn levels(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.leaving.len()];
        levels[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(at) = queue.pop_front() {
            for edge in self.leaving[at].iter().map(|edge| self.edges[*edge]) {
                if edge.rest > 0 && levels[edge.to] == usize::MAX {
                    levels[edge.to] = levels[at] + 1;
                    queue.push_back(edge.to);
                }
            }
        }
        (levels[sink] != usize::MAX).then_some(levels)
    }

    /// Pushes up to `most` along one path of rising levels; as deep as the levels.
    fn push(&mut self, at: usize, sink: usize, most: i64, levels: &[usize], next: &mut [usize]) -> i64 {
        if at == sink {
            return most;
        }
        while let Some(&edge) = self.leaving[at].get(next[at]) {
            let Edge { to, rest } = self.edges[edge];
            if rest > 0 && levels[to] == levels[at] + 1 {
                let pushed = self.push(to, sink, most.min(rest), levels, next);
                if pushed > 0 {
                    self.edges[edge].rest -= pushed;
                    self.edges[edge ^ 1].rest += pushed;
                    return pushed;
                }
            }
            next[at] += 1;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::FlowNetwork;

    #[test]
    fn the_maximum_flow_is_the_minimum_cut() {
        // The network of Ford and Fulkerson's textbook kind: two paths and a bridge.
        let mut network = FlowNetwork::new(6);
        for (from, to, capacity) in [
            (0, 1, 16),
            (0, 2, 13),
            (2, 1, 4),
            (1, 3, 12),
            (3, 2, 9),
            (2, 4, 14),
            (4, 3, 7),
            (3, 5, 20),
            (4, 5, 4),
        ] {
            network.connect(from, to, capacity);
        }
        assert_eq!(network.maximum(0, 5), 23);
        assert_eq!(network.maximum(0, 5), 0, "nothing is left");
    }
}
