//! Lists, cut to sizes that there are statements for.

/// Cuts `items` into as few parts as will do of these sizes, which come from large to small and end with 1.
/// Each part comes with the place of its size.
pub(super) fn cut<T, const N: usize>(items: &[T], sizes: [usize; N]) -> Vec<(usize, &[T])> {
    let mut parts = Vec::new();
    let mut rest = items;
    for (place, size) in sizes.into_iter().enumerate() {
        while let Some((part, after)) = rest.split_at_checked(size) {
            parts.push((place, part));
            rest = after;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn takes_the_largest_parts_first_and_leaves_nothing() {
        let items: Vec<usize> = (0..127).collect();
        let parts = cut(&items, [50, 5, 1]);
        let lengths: Vec<_> = parts.iter().map(|(at, part)| (*at, part.len())).collect();
        let fives = [(1, 5); 5];
        let expected = [&[(0, 50), (0, 50)][..], &fives, &[(2, 1), (2, 1)]].concat();
        assert_eq!(lengths, expected);
        let again: Vec<usize> = parts
            .into_iter()
            .flat_map(|(_, part)| part.to_vec())
            .collect();
        assert_eq!(again, items);
        assert!(cut(&items[..0], [5, 1]).is_empty());
    }
}
