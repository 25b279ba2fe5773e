//! A table of routes: groups of prefixes that have their attributes in common.

use std::collections::HashMap;

use crate::wire::attributes::PathAttributes;
use crate::wire::prefix::{AddressFamily, Prefix};

/// Prefixes with the same attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteGroup {
    /// What they have in common.
    pub attributes: PathAttributes,
    /// The prefixes.
    pub prefixes: Vec<Prefix>,
}

/// Routes of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteTable {
    family: AddressFamily,
    groups: Vec<RouteGroup>,
}

impl RouteTable {
    /// A table of groups, whose prefixes must be of `family`.
    pub fn new(family: AddressFamily, groups: Vec<RouteGroup>) -> Self {
        debug_assert!(
            groups
                .iter()
                .flat_map(|group| &group.prefixes)
                .all(|prefix| prefix.family() == family)
        );
        Self { family, groups }
    }

    /// The family of all its routes.
    pub fn family(&self) -> AddressFamily {
        self.family
    }

    /// The groups in order.
    pub fn groups(&self) -> &[RouteGroup] {
        &self.groups
    }

    /// So much of it, 0 to 1, evenly from its beginning to its end.
    pub fn share(&self, share: f64) -> RouteTable {
        let millionths = (share.clamp(0.0, 1.0) * 1e6).round() as u64;
        let taken_of = |routes: u64| routes * millionths / 1_000_000;
        let mut routes = 0;
        let mut take = |prefix: &Prefix| {
            routes += 1;
            let is_taken = taken_of(routes) > taken_of(routes - 1);
            is_taken.then_some(*prefix)
        };
        let groups = self.groups.iter().filter_map(|group| {
            let prefixes: Vec<Prefix> = group.prefixes.iter().filter_map(&mut take).collect();
            (!prefixes.is_empty()).then(|| RouteGroup {
                attributes: group.attributes.clone(),
                prefixes,
            })
        });
        RouteTable {
            family: self.family,
            groups: groups.collect(),
        }
    }

    /// The number of routes.
    pub fn len(&self) -> usize {
        self.groups.iter().map(|group| group.prefixes.len()).sum()
    }

    /// Whether it has no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Collects routes one by one into groups.
#[derive(Debug)]
pub struct RouteTableBuilder {
    table: RouteTable,
    places: HashMap<PathAttributes, usize>,
}

impl RouteTableBuilder {
    /// A table without routes.
    pub fn new(family: AddressFamily) -> Self {
        Self {
            table: RouteTable::new(family, Vec::new()),
            places: HashMap::new(),
        }
    }

    /// Adds a route to those with the same attributes.
    pub fn add(&mut self, prefix: Prefix, attributes: PathAttributes) {
        let groups = &mut self.table.groups;
        if let Some(place) = self.places.get(&attributes) {
            groups[*place].prefixes.push(prefix);
            return;
        }
        self.places.insert(attributes.clone(), groups.len());
        groups.push(RouteGroup {
            attributes,
            prefixes: vec![prefix],
        });
    }

    /// The table.
    pub fn finish(self) -> RouteTable {
        self.table
    }
}
