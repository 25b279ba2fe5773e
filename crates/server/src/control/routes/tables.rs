//! Tables of routes, made of what is asked for.

use allosaur_api::commands::routes::{ROUTES_MAX, RouteMrt, RouteRange, RouteSource};
use allosaur_bgp::routes::table::RouteTable;
use allosaur_bgp::routes::{generate, mrt};
use allosaur_bgp::wire::attributes::{AsSegment, PathAttributes};
use allosaur_bgp::wire::prefix::Prefix;

use super::session::address_family;
use crate::control::files::CaptureFiles;

/// Most bytes of an MRT file: those of all peers of a large collector are smaller.
const MRT_BYTES_MAX: u64 = 4 << 30;

const _: () = assert!(ROUTES_MAX == generate::ROUTES_MAX);

/// Makes a table, or says which field is wrong.
pub(super) fn table_of(
    source: &RouteSource,
    files: &dyn CaptureFiles,
) -> Result<RouteTable, String> {
    match source {
        RouteSource::Range(range) => {
            let first = first_of(&range.first)?;
            let made = generate::range(first, range.count, attributes_of(range)?);
            made.map_err(|error| format!("field 'routes': {error}"))
        }
        RouteSource::Seed(seed) => {
            let family = address_family(seed.family);
            let made = generate::internet(family, seed.count, seed.seed, seed.attribute_seed);
            made.map_err(|error| format!("field 'routes': {error}"))
        }
        RouteSource::Mrt(RouteMrt {
            path,
            family,
            count,
        }) => {
            let wrong =
                |problem: String| format!("field 'routes.path' is '{path:.256}': {problem}");
            let file = files.read(path, MRT_BYTES_MAX);
            let file = file.map_err(|error| wrong(error.to_string()))?;
            let read = mrt::read(&file, address_family(*family), *count as usize);
            read.map_err(|error| wrong(error.to_string()))
        }
    }
}

fn first_of(text: &str) -> Result<Prefix, String> {
    text.parse().map_err(|error| {
        format!(
            "field 'routes.first' is '{text:.64}' ({error}): give a prefix such as 198.18.0.0/24 or 2001:db8::/48"
        )
    })
}

fn attributes_of(range: &RouteRange) -> Result<PathAttributes, String> {
    if range.as_path.contains(&0) {
        return Err(
            "field 'routes.as_path' has 0, which is no AS number: give 1 to 4294967295".into(),
        );
    }
    let communities = range.communities.iter().map(|text| community(text));
    let as_path = match range.as_path.is_empty() {
        true => Vec::new(),
        false => vec![AsSegment::Sequence(range.as_path.clone())],
    };
    Ok(PathAttributes {
        as_path,
        multi_exit_disc: range.med,
        local_pref: range.local_pref,
        communities: communities.collect::<Result<_, _>>()?,
        ..PathAttributes::default()
    })
}

fn community(text: &str) -> Result<u32, String> {
    let halves = text.split_once(':').and_then(|(high, low)| {
        let (high, low): (u16, u16) = (high.parse().ok()?, low.parse().ok()?);
        Some(u32::from(high) << 16 | u32::from(low))
    });
    halves.ok_or_else(|| {
        format!(
            "field 'routes.communities' has '{text:.64}': give two numbers of 0 to 65535, such as 65000:100"
        )
    })
}
