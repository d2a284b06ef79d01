//! Edges of a graph in two flat tables: one allocation for all, however many vertices there are.

/// Edges of all vertices, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Edges {
    /// Groups pairs (from, to) by their first, keeping the order of the pairs.
    pub(crate) fn group(vertices: usize, pairs: &[(u32, u32)]) -> Self {
        Self::of_pairs(vertices, pairs, |(from, to)| (from, to))
    }

    /// Groups pairs (from, to) by their second, keeping the order of the pairs.
    pub(crate) fn group_reversed(vertices: usize, pairs: &[(u32, u32)]) -> Self {
        Self::of_pairs(vertices, pairs, |(from, to)| (to, from))
    }

    fn of_pairs(
        vertices: usize,
        pairs: &[(u32, u32)],
        way: impl Fn((u32, u32)) -> (u32, u32),
    ) -> Self {
        let mut starts = vec![0_u32; vertices + 1];
        for pair in pairs {
            starts[way(*pair).0 as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; pairs.len()];
        for pair in pairs {
            let (from, to) = way(*pair);
            let slot = &mut next[from as usize];
            targets[*slot as usize] = to;
            *slot += 1;
        }
        Self { starts, targets }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    fn range(&self, vertex: u32) -> std::ops::Range<usize> {
        let vertex = vertex as usize;
        self.starts[vertex] as usize..self.starts[vertex + 1] as usize
    }

    /// What a vertex points to.
    pub(crate) fn of(&self, vertex: u32) -> &[u32] {
        &self.targets[self.range(vertex)]
    }

    /// The same, to be changed.
    pub(crate) fn of_mut(&mut self, vertex: u32) -> &mut [u32] {
        let range = self.range(vertex);
        &mut self.targets[range]
    }
}
