//! Sides that take turns, and the ratios of those that ran next to each other.

use crate::setup::median;

/// The rates of `N` sides, one for each round.
pub(crate) struct Rounds<const N: usize>([Vec<f64>; N]);

/// Measures each side once in a round. Each round begins with another side, so that neither what
/// disturbs one sample nor a place in the round decides.
pub(crate) async fn rounds<const N: usize>(
    count: usize,
    measure: impl AsyncFn(usize) -> f64,
) -> Rounds<N> {
    let mut rates: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..count {
        for turn in 0..N {
            let side = (round + turn) % N;
            rates[side].push(measure(side).await);
        }
    }
    Rounds(rates)
}

impl<const N: usize> Rounds<N> {
    /// The median rate of each side.
    pub(crate) fn rates(&self) -> [f64; N] {
        self.0.each_ref().map(|rates| median(rates.clone()))
    }

    /// The median, over the rounds, of one side's rate by another's: what slows a whole round down
    /// changes nothing.
    pub(crate) fn ratio(&self, side: usize, to: usize) -> f64 {
        let pairs = self.0[side].iter().zip(&self.0[to]);
        median(pairs.map(|(side, to)| side / to).collect())
    }
}
