//! The names of a disk: those that programs see, those that are safe, and the changes between the two, in their order.
//!
//! Invariants: a change is kept or lost as a whole, a rename across two directories too; the safe names are those seen before the changes that are not safe yet;
//! at most [`MOST_CHANGES`] changes wait, since every file system writes its journal out now and then.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};

/// The number of a file, directory or anything else that has a name.
pub type Inode = u64;

/// The directory that has no name.
pub const ROOT: Inode = 1;

/// Changes that wait at most; with more the oldest half becomes safe by itself.
pub const MOST_CHANGES: usize = 65_536;

/// One name that comes, goes, or stands for something else.
#[derive(Debug, Clone)]
struct Slot {
    directory: Inode,
    name: OsString,
    stands_for: Option<Inode>,
}

/// What each directory holds.
#[derive(Debug, Default, Clone)]
struct Tree(HashMap<Inode, BTreeMap<OsString, Inode>>);

impl Tree {
    fn set(&mut self, slot: &Slot) -> Option<Inode> {
        let names = self.0.entry(slot.directory).or_default();
        match slot.stands_for {
            Some(inode) => names.insert(slot.name.clone(), inode),
            None => names.remove(&slot.name),
        }
    }

    /// All that has a name, with how many names it has.
    fn reachable(&self) -> HashMap<Inode, u32> {
        let mut links = HashMap::from([(ROOT, 1)]);
        let mut directories = vec![ROOT];
        while let Some(directory) = directories.pop() {
            for inode in self.0.get(&directory).into_iter().flat_map(BTreeMap::values) {
                let count = links.entry(*inode).or_insert(0);
                *count += 1;
                if *count == 1 {
                    directories.push(*inode);
                }
            }
        }
        links
    }
}

/// The names of a disk.
#[derive(Debug, Default)]
pub struct NameTable {
    now: Tree,
    safe: Tree,
    changes: VecDeque<Vec<Slot>>,
    /// How often the safe names and the changes mention each inode.
    mentions: HashMap<Inode, u32>,
}

impl NameTable {
    /// What a name stands for.
    pub fn get(&self, directory: Inode, name: &OsStr) -> Option<Inode> {
        self.now.0.get(&directory)?.get(name).copied()
    }

    /// The names of a directory, in order.
    pub fn list(&self, directory: Inode) -> impl Iterator<Item = (&OsStr, Inode)> {
        self.now.0.get(&directory).into_iter().flatten().map(|(name, inode)| (name.as_os_str(), *inode))
    }

    /// Whether a directory holds nothing.
    pub fn is_empty(&self, directory: Inode) -> bool {
        self.now.0.get(&directory).is_none_or(BTreeMap::is_empty)
    }

    /// Whether a cut could bring something back that has no name any more.
    pub fn could_return(&self, inode: Inode) -> bool {
        self.mentions.contains_key(&inode)
    }

    /// Changes that are not safe.
    pub fn unsynced_changes(&self) -> usize {
        self.changes.len()
    }

    /// A name comes or goes.
    pub fn set(&mut self, directory: Inode, name: &OsStr, stands_for: Option<Inode>) {
        self.change(vec![Slot { directory, name: name.to_owned(), stands_for }]);
    }

    /// A name moves; what the new one stood for is replaced, or takes the old name if the two are exchanged.
    pub fn rename(&mut self, from: (Inode, &OsStr), to: (Inode, &OsStr), is_exchange: bool) {
        let moved = self.get(from.0, from.1);
        let replaced = if is_exchange { self.get(to.0, to.1) } else { None };
        self.change(vec![
            Slot { directory: from.0, name: from.1.to_owned(), stands_for: replaced },
            Slot { directory: to.0, name: to.1.to_owned(), stands_for: moved },
        ]);
    }

    /// The changes of one directory are safe.
    pub fn sync(&mut self, directory: Inode) {
        let (of_it, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.changes)
            .into_iter()
            .partition(|change| change.iter().any(|slot| slot.directory == directory));
        self.changes = others;
        of_it.into_iter().for_each(|change| self.make_safe(change));
    }

    /// All changes are safe: a journal is written as a whole.
    pub fn sync_all(&mut self) {
        self.keep_oldest(self.changes.len());
    }

    /// The power is gone: so many of the changes, in their order, are there. Returns how many names everything has that still has one.
    pub fn cut(&mut self, kept: usize) -> HashMap<Inode, u32> {
        self.keep_oldest(kept);
        let links = self.safe.reachable();
        self.safe.0.retain(|directory, _| links.contains_key(directory));
        self.now = self.safe.clone();
        self.changes.clear();
        self.mentions.clear();
        for inode in self.safe.0.values().flat_map(BTreeMap::values) {
            *self.mentions.entry(*inode).or_insert(0) += 1;
        }
        links
    }

    /// Forgets what a directory held that is gone for good.
    pub fn forget(&mut self, directory: Inode) {
        self.now.0.remove(&directory);
        self.safe.0.remove(&directory);
    }

    fn change(&mut self, slots: Vec<Slot>) {
        for slot in &slots {
            self.now.set(slot);
            if let Some(inode) = slot.stands_for {
                *self.mentions.entry(inode).or_insert(0) += 1;
            }
        }
        self.changes.push_back(slots);
        if self.changes.len() > MOST_CHANGES {
            self.keep_oldest(MOST_CHANGES / 2);
        }
    }

    fn keep_oldest(&mut self, count: usize) {
        let count = count.min(self.changes.len());
        let oldest: Vec<_> = self.changes.drain(..count).collect();
        oldest.into_iter().for_each(|change| self.make_safe(change));
    }

    /// The mention of a slot passes from the change to the safe names; what the name stood for there loses one.
    fn make_safe(&mut self, change: Vec<Slot>) {
        for slot in change {
            if let Some(inode) = self.safe.set(&slot) {
                self.lose_mention(inode);
            }
        }
    }

    fn lose_mention(&mut self, inode: Inode) {
        if let Some(count) = self.mentions.get_mut(&inode) {
            *count -= 1;
            if *count == 0 {
                self.mentions.remove(&inode);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &NameTable, directory: Inode) -> Vec<(String, Inode)> {
        table.list(directory).map(|(name, inode)| (name.to_string_lossy().into_owned(), inode)).collect()
    }

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn a_name_that_was_never_synced_is_lost_and_a_synced_one_is_not() {
        let mut table = NameTable::default();
        table.set(ROOT, name("kept"), Some(2));
        table.sync(ROOT);
        table.set(ROOT, name("lost"), Some(3));
        table.set(ROOT, name("kept"), None);
        assert!(table.could_return(2));
        let links = table.cut(0);
        assert_eq!(names(&table, ROOT), [("kept".to_owned(), 2)]);
        assert_eq!(links, HashMap::from([(ROOT, 1), (2, 1)]));
        assert!(!table.could_return(3));
    }

    #[test]
    fn a_rename_is_whole_in_whichever_directory_is_synced() {
        for synced in [10, 11] {
            let mut table = NameTable::default();
            table.set(ROOT, name("a"), Some(10));
            table.set(ROOT, name("b"), Some(11));
            table.set(10, name("file"), Some(2));
            table.set(11, name("file"), Some(3));
            table.sync_all();
            table.rename((10, name("file")), (11, name("file")), false);
            assert!(table.could_return(3), "a cut now brings the replaced file back");
            table.sync(synced);
            assert!(!table.could_return(3));
            table.cut(0);
            assert_eq!((names(&table, 10), names(&table, 11)), (vec![], vec![("file".to_owned(), 2)]));
        }
    }

    #[test]
    fn what_survives_by_chance_is_a_beginning_of_what_was_done() {
        for kept in 0..=4 {
            let mut table = NameTable::default();
            for number in 0..4 {
                table.set(ROOT, name(&format!("{number}")), Some(10 + number));
            }
            table.cut(kept);
            let expected: Vec<_> = (0..kept as u64).map(|number| (number.to_string(), 10 + number)).collect();
            assert_eq!(names(&table, ROOT), expected);
        }
    }

    #[test]
    fn a_directory_without_a_safe_name_is_lost_with_what_it_holds() {
        let mut table = NameTable::default();
        table.set(ROOT, name("directory"), Some(5));
        table.set(5, name("file"), Some(6));
        table.sync(5);
        assert_eq!(table.cut(0), HashMap::from([(ROOT, 1)]));
        assert_eq!(names(&table, 5), []);
        assert!(!table.could_return(6));
    }

    #[test]
    fn exchanged_names_and_a_second_name_are_counted() {
        let mut table = NameTable::default();
        table.set(ROOT, name("a"), Some(2));
        table.set(ROOT, name("b"), Some(3));
        table.set(ROOT, name("c"), Some(3));
        table.rename((ROOT, name("a")), (ROOT, name("b")), true);
        table.sync(ROOT);
        let links = table.cut(0);
        assert_eq!(names(&table, ROOT), [("a".to_owned(), 3), ("b".to_owned(), 2), ("c".to_owned(), 3)]);
        assert_eq!((links[&2], links[&3]), (1, 2));
    }

    #[test]
    fn names_that_come_and_go_for_ever_take_bounded_memory() {
        let mut table = NameTable::default();
        for number in 0..200_000_u64 {
            table.set(ROOT, name("temporary"), Some(10 + number));
            table.set(ROOT, name("temporary"), None);
        }
        assert!(table.unsynced_changes() <= MOST_CHANGES);
        assert!(table.mentions.len() <= MOST_CHANGES);
        table.sync_all();
        assert!(table.mentions.is_empty());
    }
}
