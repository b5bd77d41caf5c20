//! Servers of which it is known beforehand what they say, all of it: in fuzzing nothing comes at its time.

use super::Channel;

impl Channel {
    /// Whether what came before it was asked for is an answer like any other. Never in an ordinary build.
    pub(in crate::database) fn is_scripted(&self) -> bool {
        #[cfg(any(test, fuzzing, feature = "fuzzed"))]
        return self.is_scripted;
        #[cfg(not(any(test, fuzzing, feature = "fuzzed")))]
        false
    }

    /// From now on it is, or not any more.
    #[cfg(any(test, fuzzing, feature = "fuzzed"))]
    pub(in crate::database) fn follow_script(&mut self, is_scripted: bool) {
        self.is_scripted = is_scripted;
    }
}
