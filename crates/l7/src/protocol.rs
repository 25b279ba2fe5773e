//! What a flow speaks above its transport, whatever that is: the bytes of TCP as they are
//! ([`OverTcp`]), or those inside of TLS ([`TlsFlows`](crate::tls::TlsFlows)).

use std::fmt::Debug;
use std::sync::Arc;

use allosaur_engine::app::{
    AppCore, AppFlows, AppRow, Application, ApplicationFactory, Buffers, CoreInfo,
};

/// Makes the applications of flows that speak one protocol.
pub trait AppProtocol: Debug + Send + Sync + 'static {
    /// The application of one flow.
    type Flow: Application + 'static;

    /// What its flows count beside what all do.
    fn rows(&self) -> Vec<&'static [AppRow]>;

    /// What its flows share on one more core.
    fn shared(&self, core: &CoreInfo) -> <Self::Flow as Application>::Shared;

    /// The constant bytes that its flows name when they say some.
    fn buffers(&self) -> &Arc<Buffers>;
}

/// A protocol on the bytes of TCP.
#[derive(Debug)]
pub struct OverTcp<P>(pub P);

impl<P: AppProtocol> ApplicationFactory for OverTcp<P> {
    fn rows(&self) -> Vec<&'static [AppRow]> {
        self.0.rows()
    }

    fn core(&self, core: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<P::Flow>::new(self.0.shared(core)))
    }
}
