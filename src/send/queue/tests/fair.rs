//! Shares, rounds, and what a pick costs.

use super::*;
use crate::send::queue::share::{QUEUE_MOST, Share};
use crate::send::queue::{PICK_MOST, PICK_QUEUE_MOST};

#[test]
fn one_pick_is_bounded_in_all_and_for_each_queue() {
    let names: Vec<String> = (0..100).map(|number| format!("q{number}")).collect();
    let mut world = World::new(names.iter().map(|name| rule(name, &[])).collect());
    world.due(&["q0"]);
    let claims = world.start_all();
    assert_eq!(claims.len(), PICK_QUEUE_MOST as usize);
    for name in &names {
        world.due(&[name]);
    }
    let picked = world.queues.pick();
    assert_eq!(picked.wants.iter().map(|want| want.most).sum::<u32>(), PICK_MOST);
    assert_eq!(picked.wants.len(), 64, "many queues get a little before one gets much");
    assert_eq!(picked.wake_at, Some(world.now()));
    assert_eq!(world.queues.pick().wants.len(), 36, "the others are next");
}

#[test]
fn claims_go_round_the_workspaces() {
    let mut rules: Vec<Rule> = (0..200).map(|number| rule(&format!("big/r{number}"), &[])).collect();
    rules.push(rule("small/r", &[]));
    let world = World::new(rules);
    for number in 0..200 {
        world.due(&[&format!("big/r{number}")]);
    }
    world.due(&["small/r"]);
    let picked = world.queues.pick();
    assert!(picked.wants.iter().any(|want| want.queue == key("small/r")));
}

#[test]
fn shares_shrink_as_others_hang_and_never_reach_everything() {
    let alone = Share { most: 16_384, held: 0, workspace: 0, queue: 0 };
    assert_eq!(alone.room(u32::MAX), QUEUE_MOST);
    let small = Share { most: 400, held: 0, workspace: 0, queue: 0 };
    assert_eq!(small.room(u32::MAX), 400 / 4);
    // Destinations of one workspace that hang one after the other, each with all it may have.
    let (mut held, mut free) = (0, Vec::new());
    for _ in 0..100 {
        held += Share { most: 16_384, held, workspace: held, queue: 0 }.room(u32::MAX);
        free.push(16_384 / 2 - held);
    }
    assert!(free[9] > 400 && free[99] > 20, "{free:?}");
    // The same, each in a workspace of its own.
    let mut held = 0;
    for _ in 0..100 {
        held += Share { most: 16_384, held, workspace: 0, queue: 0 }.room(u32::MAX);
    }
    assert!(16_384 - held > 60, "{held}");
}

#[test]
fn a_queue_that_hangs_leaves_room_for_every_other() {
    let mut rules: Vec<Rule> = (0..8).map(|number| rule(&format!("slow{number}"), &[])).collect();
    rules.push(rule("quick", &[]));
    let mut world = World::of(1_000, rules);
    for number in 0..8 {
        world.due(&[&format!("slow{number}")]);
        while !world.start_all().is_empty() {}
    }
    world.due(&["quick"]);
    let claim = world.start_all().remove(0);
    assert_eq!(claim.queue, key("quick"));
    assert!(world.queues.in_flight() < 500);
}

#[test]
fn a_workspace_gets_half_and_the_next_half_of_the_rest() {
    let rules =
        ["big", "next"].iter().flat_map(|workspace| (0..100).map(move |n| rule(&format!("{workspace}/r{n}"), &[])));
    let mut world = World::of(800, rules.collect());
    let mut held = Vec::new();
    for workspace in ["big", "next"] {
        for number in 0..100 {
            world.due(&[&format!("{workspace}/r{number}")]);
        }
        let mut count = 0;
        loop {
            let claims = world.start_all();
            if claims.is_empty() {
                break;
            }
            count += claims.iter().filter(|claim| claim.queue.workspace == name(workspace)).count();
        }
        held.push(count);
    }
    assert!((300..=400).contains(&held[0]) && held[0] + held[1] < 700, "{held:?}");
    assert!(held[1] > 100, "{held:?}");
}

#[test]
fn what_waits_for_its_share_goes_on_as_others_end() {
    let rules = (0..20).map(|number| rule(&format!("r{number}"), &[])).collect();
    let mut world = World::of(64, rules);
    for number in 0..20 {
        world.due(&[&format!("r{number}")]);
    }
    let mut running = std::collections::VecDeque::new();
    let mut made: std::collections::HashMap<QueueKey, u32> = std::collections::HashMap::new();
    for _ in 0..4_000 {
        running.extend(world.start_all());
        assert!(world.queues.in_flight() <= 64);
        let claim: Claim = running.pop_front().unwrap();
        *made.entry(claim.queue.clone()).or_default() += 1;
        world.end(&claim);
    }
    assert_eq!(made.len(), 20);
    let (least, most) = (made.values().min().unwrap(), made.values().max().unwrap());
    assert!(most - least < 60, "{made:?}");
}

#[test]
fn queues_with_nothing_to_do_cost_a_pick_nothing() {
    let rules = (0..100_000).map(|number| rule(&format!("w{}/r{number}", number % 500), &[])).collect();
    let world = World::new(rules);
    for number in 0..1_000 {
        world.queues.due(&key(&format!("w{}/r{number}", number % 500)), world.at(60));
    }
    let before = world.examined();
    assert!(world.pick().is_empty());
    world.due(&["w0/r0"]);
    assert_eq!(world.pick().len(), 1);
    assert!(world.examined() - before < 10, "{}", world.examined() - before);
}

#[test]
fn queues_that_wait_for_dead_lanes_cost_a_pick_nothing() {
    let mut rules: Vec<Rule> =
        (0..10_000).map(|number| rule(&format!("r{number}"), &[limited(&format!("x{}", number % 10), 1)])).collect();
    rules.push(rule("alive", &[]));
    let mut world = World::new(rules);
    for number in 0..10_000 {
        world.due(&[&format!("r{number}")]);
    }
    let mut claims = Vec::new();
    loop {
        let picked = world.queues.pick();
        if picked.wants.is_empty() {
            break;
        }
        let now = world.now();
        claims.extend(picked.wants.iter().flat_map(|want| world.answer(want, want.most, Some(now))));
    }
    assert_eq!(claims.len(), 10, "ten lanes of one attempt");
    let before = world.examined();
    for _ in 0..100 {
        assert!(world.pick().is_empty());
        world.due(&["alive"]);
        let claim = world.start_one();
        world.end(&claim);
    }
    assert!(world.examined() - before < 1_000, "{}", world.examined() - before);
    // One that ends lets one in, and costs no more than that.
    let before = world.examined();
    world.end(&claims[0]);
    assert_eq!(world.pick().len(), 1);
    assert!(world.examined() - before < 20, "{}", world.examined() - before);
}
