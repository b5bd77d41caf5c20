//! The names of a disk: the visible names, the safe names, and the changes between the two, in their order.
//!
//! Invariants: a change is kept or lost as a whole, even a rename across two directories; the safe names are the visible names as they were before the pending changes;
//! at most [`MOST_CHANGES`] changes are pending, since every file system writes its journal out now and then.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};

/// The inode number of a file, directory or anything else that has a name.
pub type Inode = u64;

/// The root directory, which has no name.
pub const ROOT: Inode = 1;

/// Maximum number of pending changes; beyond it, the oldest half becomes safe by itself.
pub const MOST_CHANGES: usize = 65_536;

/// A name that is added, removed, or made to refer to another inode.
#[derive(Debug, Clone)]
struct Slot {
    directory: Inode,
    name: OsString,
    stands_for: Option<Inode>,
}

/// The names in each directory.
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

    /// Returns the root and every inode reachable from it, each with the number of its names.
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
    /// How often the safe names and the pending changes mention each inode.
    mentions: HashMap<Inode, u32>,
}

impl NameTable {
    /// Returns the inode that a name refers to.
    pub fn get(&self, directory: Inode, name: &OsStr) -> Option<Inode> {
        self.now.0.get(&directory)?.get(name).copied()
    }

    /// Returns the names of a directory, in order.
    pub fn list(&self, directory: Inode) -> impl Iterator<Item = (&OsStr, Inode)> {
        self.now.0.get(&directory).into_iter().flatten().map(|(name, inode)| (name.as_os_str(), *inode))
    }

    /// Returns whether a directory is empty.
    pub fn is_empty(&self, directory: Inode) -> bool {
        self.now.0.get(&directory).is_none_or(BTreeMap::is_empty)
    }

    /// Returns whether a cut could bring back an inode that has no name any more.
    pub fn could_return(&self, inode: Inode) -> bool {
        self.mentions.contains_key(&inode)
    }

    /// Returns the number of changes that are not safe.
    pub fn unsynced_changes(&self) -> usize {
        self.changes.len()
    }

    /// Adds a name, makes it refer to another inode, or removes it if `stands_for` is `None`.
    pub fn set(&mut self, directory: Inode, name: &OsStr, stands_for: Option<Inode>) {
        self.change(vec![Slot { directory, name: name.to_owned(), stands_for }]);
    }

    /// Moves a name; the inode that the new name referred to is replaced or, in an exchange, gets the old name.
    pub fn rename(&mut self, from: (Inode, &OsStr), to: (Inode, &OsStr), is_exchange: bool) {
        let moved = self.get(from.0, from.1);
        let replaced = if is_exchange { self.get(to.0, to.1) } else { None };
        self.change(vec![
            Slot { directory: from.0, name: from.1.to_owned(), stands_for: replaced },
            Slot { directory: to.0, name: to.1.to_owned(), stands_for: moved },
        ]);
    }

    /// Makes the changes of one directory safe, and with them the older changes of every name that they touch: a name that a rename moved away must not come back when
    /// its old directory is synced later.
    pub fn sync(&mut self, directory: Inode) {
        let mut touched: HashSet<(Inode, OsString)> = HashSet::new();
        let (mut synced, mut others) = (Vec::new(), VecDeque::new());
        for change in std::mem::take(&mut self.changes).into_iter().rev() {
            let names = || change.iter().map(|slot| (slot.directory, slot.name.clone()));
            if names().any(|name| name.0 == directory || touched.contains(&name)) {
                touched.extend(names());
                synced.push(change);
            } else {
                others.push_front(change);
            }
        }
        self.changes = others;
        synced.into_iter().rev().for_each(|change| self.make_safe(change));
    }

    /// Makes all changes safe, since a journal is written as a whole.
    pub fn sync_all(&mut self) {
        self.keep_oldest(self.changes.len());
    }

    /// Cuts the power: only the oldest `kept` changes remain. Returns every inode that still has a name, with the number of its names.
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

    /// Forgets the names in a directory that is gone for good.
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

    /// Applies a change to the safe names, to which its mentions pass; an inode that a safe name referred to before loses one.
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
    fn a_name_that_was_moved_away_does_not_come_back_with_its_old_directory() {
        let mut table = NameTable::default();
        let (a, b) = (10, 11);
        table.set(ROOT, name("a"), Some(a));
        table.set(ROOT, name("b"), Some(b));
        table.sync(ROOT);
        table.set(a, name("y"), Some(2));
        table.rename((a, name("y")), (b, name("y")), false);
        table.sync(b);
        assert_eq!(table.unsynced_changes(), 0);
        table.set(a, name("z"), Some(3));
        table.sync(a);
        let links = table.cut(0);
        assert_eq!(names(&table, a), [("z".to_owned(), 3)]);
        assert_eq!(names(&table, b), [("y".to_owned(), 2)]);
        assert_eq!(links[&2], 1);
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
