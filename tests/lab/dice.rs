//! Numbers that look random and are the same for the same seed (SplitMix64).

use uuid::Uuid;

/// Equal seeds give equal numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap_or(0)
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        let (a, b) = (self.next().to_be_bytes(), self.next().to_be_bytes());
        let bytes = std::array::from_fn(|i| if i < 8 { a[i] } else { b[i - 8] });
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}
