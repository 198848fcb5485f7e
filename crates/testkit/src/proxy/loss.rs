//! Whose answer is to be lost: of the first connection that says all of some words.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Words to wait for, on all connections.
pub(super) struct Trap {
    words: Vec<Vec<u8>>,
    is_sprung: AtomicBool,
}

impl Trap {
    pub(super) fn new(words: Vec<Vec<u8>>) -> Self {
        assert!(!words.is_empty() && words.iter().all(|word| !word.is_empty()), "words to wait for");
        Self { words, is_sprung: AtomicBool::new(false) }
    }
}

/// How far one connection has come with the words, whatever the pieces are that it speaks in.
#[derive(Default)]
pub(super) struct Search {
    trap: Option<Arc<Trap>>,
    /// The word that comes next.
    at: usize,
    /// The last bytes, in which a word may have begun.
    tail: Vec<u8>,
}

impl Search {
    /// Reads on. True for the one connection that springs the trap with these bytes.
    pub(super) fn springs(&mut self, trap: Option<&Arc<Trap>>, bytes: &[u8]) -> bool {
        let Some(trap) = trap.filter(|trap| !trap.is_sprung.load(Ordering::Relaxed)) else { return false };
        if !self.trap.as_ref().is_some_and(|known| Arc::ptr_eq(known, trap)) {
            *self = Self { trap: Some(trap.clone()), ..Self::default() };
        }
        self.tail.extend_from_slice(bytes);
        while let Some(word) = trap.words.get(self.at) {
            let Some(begin) = self.tail.windows(word.len()).position(|window| window == word) else {
                let kept = self.tail.len().min(word.len() - 1);
                self.tail.drain(..self.tail.len() - kept);
                return false;
            };
            self.tail.drain(..begin + word.len());
            self.at += 1;
        }
        !trap.is_sprung.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trap(words: &[&str]) -> Arc<Trap> {
        Arc::new(Trap::new(words.iter().map(|word| word.as_bytes().to_vec()).collect()))
    }

    /// The number of the piece that springs it.
    fn sprung_by(trap: &Arc<Trap>, pieces: &[&str]) -> Option<usize> {
        let mut search = Search::default();
        pieces.iter().position(|piece| search.springs(Some(trap), piece.as_bytes()))
    }

    #[test]
    fn a_word_is_found_wherever_the_pieces_end() {
        for cut in 0..="a COMMIT;".len() {
            let (first, second) = "a COMMIT;".split_at(cut);
            assert!(sprung_by(&trap(&["COMMIT"]), &[first, second]).is_some(), "cut at {cut}");
        }
        let letters = ["C", "O", "M", "M", "I", "T"];
        assert_eq!(sprung_by(&trap(&["COMMIT"]), &letters), Some(5));
    }

    #[test]
    fn words_have_to_come_one_after_the_other() {
        assert_eq!(sprung_by(&trap(&["settle", "COMMIT"]), &["COMMIT settle", " COM", "MIT"]), Some(2));
        assert_eq!(sprung_by(&trap(&["abc", "cd"]), &["abcd"]), None);
    }

    #[test]
    fn a_trap_springs_for_one_connection_alone() {
        let trap = trap(&["COMMIT"]);

        assert_eq!(sprung_by(&trap, &["COMMIT"]), Some(0));
        assert_eq!(sprung_by(&trap, &["COMMIT"]), None);
    }

    #[test]
    fn a_new_trap_is_searched_from_its_first_word() {
        let (old, new) = (trap(&["begin", "COMMIT"]), trap(&["begin", "COMMIT"]));
        let mut search = Search::default();

        assert!(!search.springs(Some(&old), b"begin"));
        assert!(!search.springs(Some(&new), b"COMMIT"));
        assert!(search.springs(Some(&new), b"begin COMMIT"));
    }
}
