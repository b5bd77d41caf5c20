//! The disk with a kernel: these tests need FUSE, and `./check` says where there is none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

mod mounted_disk;
