//! Deterministic randomness: the same seeds give the same rolls on every machine.

use uuid::Uuid;

/// SplitMix64, which is small, fast and good enough to make test data.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice for one subject; any difference between the seeds gives unrelated rolls.
    pub fn new(topic: &str, seeds: &[u64]) -> Self {
        let mut dice = Self(0);
        for seed in topic.bytes().map(u64::from).chain(seeds.iter().copied()) {
            dice.0 ^= seed;
            dice.0 = dice.bits();
        }
        dice
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn word(&mut self) -> u32 {
        u32::try_from(self.bits() >> 32).expect("the upper half of 64 bits has 32")
    }

    /// A number from 0 to `sides` - 1.
    pub fn below(&mut self, sides: u16) -> i32 {
        let scaled = (u64::from(self.word()) * u64::from(sides)) >> 32;
        i32::try_from(scaled).expect("less than `sides`")
    }

    /// A place in something of this length, which is not empty.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.bits() % length as u64).expect("less than a `usize`")
    }

    /// One of several, at least one.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.place(all.len())]
    }

    /// A number from 0 to 1, without 1.
    pub fn fraction(&mut self) -> f64 {
        f64::from(self.word()) / 2f64.powi(32)
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: u16) -> bool {
        self.below(times) == 0
    }

    /// A version 4 UUID.
    pub fn uuid(&mut self) -> Uuid {
        let bits = (u128::from(self.bits()) << 64) | u128::from(self.bits());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_roll_alike_and_others_do_not() {
        assert_eq!(Dice::new("orders", &[1, 2]).uuid(), Dice::new("orders", &[1, 2]).uuid());
        assert_ne!(Dice::new("orders", &[1, 2]).uuid(), Dice::new("orders", &[2, 1]).uuid());
        assert_ne!(Dice::new("orders", &[1, 2]).uuid(), Dice::new("balances", &[1, 2]).uuid());
    }

    #[test]
    fn rolls_stay_below_their_sides_and_fractions_below_one() {
        let mut dice = Dice::new("range", &[7]);
        for _ in 0..1000 {
            assert!((0..6).contains(&dice.below(6)));
            assert!(dice.place(3) < 3);
            assert!((0.0..1.0).contains(&dice.fraction()));
        }
    }
}
