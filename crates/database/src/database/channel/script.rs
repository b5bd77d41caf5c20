//! Scripted servers, whose messages are all given in advance: in fuzzing no message waits for its request.

use super::Channel;

impl Channel {
    /// Returns whether data that arrived before the request counts as its answer. Always false in an ordinary build.
    pub(in crate::database) fn is_scripted(&self) -> bool {
        #[cfg(any(test, fuzzing, feature = "fuzzed"))]
        return self.is_scripted;
        #[cfg(not(any(test, fuzzing, feature = "fuzzed")))]
        false
    }

    /// Sets whether the server is scripted.
    #[cfg(any(test, fuzzing, feature = "fuzzed"))]
    pub(in crate::database) fn follow_script(&mut self, is_scripted: bool) {
        self.is_scripted = is_scripted;
    }
}
