//! The data thread of stateful mode allocates nothing while flows come and go.
//!
//! Alone in its file: the count is of the whole process.

#[path = "threads/asking.rs"]
#[allow(dead_code)] // The other tests use more of it.
mod asking;
#[path = "threads/flow_threads/world.rs"]
#[allow(dead_code)] // The other tests use more of it.
mod world;

use std::alloc::System;

use allosaur_port::memory::LinkSettings;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use world::{World, profile};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn closed(world: &World) -> u64 {
    world.totals()[1].flows.tcp.closed
}

#[test]
fn flows_that_come_and_go_allocate_nothing() {
    let mut world = World::new(1, LinkSettings::default());
    world.start(&profile(4_000.0, None), None);
    let warming_up = Region::new(ALLOCATOR);
    // Clients keep what is over for a second; then places are used again.
    world.until("all lists have their length", |world| {
        closed(world) > 12_000
    });
    assert_ne!(
        warming_up.change().allocations,
        0,
        "allocations are not counted"
    );
    let before = closed(&world);
    let region = Region::new(ALLOCATOR);
    world.until("thousands of flows", |world| closed(world) > before + 5_000);
    let change = region.change();
    assert_eq!(
        (change.allocations, change.reallocations),
        (0, 0),
        "{change:?}"
    );
}
