//! Adds so many nodes with addresses and removes them, and says how long each took.

use std::sync::Arc;
use std::time::Instant;

use allosaur_nodes::node::NodeIpv4;
use allosaur_nodes::node::NodePlacement;
use allosaur_nodes::owner::Owner;
use allosaur_nodes::{NodesError, PortNodes};

fn main() -> Result<(), NodesError> {
    let count = std::env::args().nth(1);
    let count: u32 = count.and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mut nodes = PortNodes::open(Arc::new(Owner::new()?), 0)?;
    let started = Instant::now();
    for number in 0..count {
        let [a, b, c, d] = number.to_be_bytes();
        let mac = [2, 0, a, b, c, d];
        nodes.add(mac, NodePlacement::Own)?;
        let ipv4 = NodeIpv4 {
            address: [10, b, c, d].into(),
            subnet: None,
            gateway: Some([10, 255, 255, 254].into()),
        };
        nodes.set_ipv4(mac, Some(ipv4))?;
    }
    let added = started.elapsed();
    let each = added.as_secs_f64() * 1e3 / f64::from(count.max(1));
    println!("added {count} nodes in {added:.2?}, {each:.2} ms each");
    let started = Instant::now();
    nodes.remove_all()?;
    println!("removed them in {:.2?}", started.elapsed());
    Ok(())
}
