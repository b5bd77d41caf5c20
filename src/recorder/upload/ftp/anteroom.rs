//! Where connections are until they have logged in: bounded, and when it is full the one that is there longest has to go. So those who
//! only hold connections do not keep cameras out, which log in at once. Main type: [`Anteroom`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Places for those that have not logged in.
#[derive(Debug)]
pub(super) struct Anteroom {
    places: usize,
    /// Those that are in it, who came first before.
    inside: Mutex<VecDeque<Arc<Notify>>>,
}

/// A place in it, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Arc<Anteroom>,
    goes: Arc<Notify>,
}

impl Anteroom {
    pub(super) fn new(places: usize) -> Arc<Self> {
        Arc::new(Anteroom { places: places.max(1), inside: Mutex::default() })
    }

    /// Somebody comes in.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let goes = Arc::new(Notify::new());
        let mut inside = self.inside();
        if inside.len() >= self.places
            && let Some(longest) = inside.pop_front()
        {
            longest.notify_one();
        }
        inside.push_back(Arc::clone(&goes));
        Place { room: Arc::clone(self), goes }
    }

    fn inside(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Comes back when the place is needed.
    pub(super) async fn sent_away(&self) {
        self.goes.notified().await;
        // Whoever is told and asks again is told again.
        self.goes.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.inside().retain(|goes| !Arc::ptr_eq(goes, &self.goes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_there_longest_goes_when_a_place_is_needed() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let room = Anteroom::new(2);
            let (first, second) = (room.enter(), room.enter());
            let third = room.enter();
            first.sent_away().await;
            first.sent_away().await;
            for place in [&second, &third] {
                let stays = tokio::time::timeout(std::time::Duration::from_millis(10), place.sent_away()).await;
                assert!(stays.is_err());
            }
            drop((first, second));
            let fourth = room.enter();
            assert_eq!(room.inside().len(), 2, "{third:?} {fourth:?}");
        });
    }
}
