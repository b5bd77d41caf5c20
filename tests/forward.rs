//! Blocks that one recorder takes in and another one stores, joined by a NATS object store: what is acknowledged at the first is stored once at the
//! second, whatever ends, is lost, damaged or written into the store by others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "blocks/centre.rs"]
mod centre;
#[path = "recorder/nats.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod nats;

#[path = "forward/damage.rs"]
mod damage;
#[path = "forward/killed.rs"]
mod killed;
#[path = "forward/machines.rs"]
mod machines;
#[path = "forward/room.rs"]
mod room;
#[path = "forward/strangers.rs"]
mod strangers;
#[path = "forward/two.rs"]
mod two;
