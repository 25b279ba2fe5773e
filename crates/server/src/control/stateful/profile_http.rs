//! Programs that speak HTTP: from their fields to what their flows run.

use std::sync::Arc;

use allosaur_api::commands::stateful::http::{
    HttpClientFields, HttpFields, HttpRequestFields, HttpRouteFields, HttpServerFields,
    HttpSourceFields, HttpValueFields,
};
use allosaur_api::commands::stateful::profile as json;
use allosaur_engine::app::{ApplicationFactory, BufferIndex, Buffers};
use allosaur_engine::template::{CompiledProfile, ProfileSpec, ProgramIndex, Side, Tunable};
use allosaur_l7::http::{
    Expected, HttpClientSettings, HttpClients, HttpRequest, HttpRequestBody, HttpRoute,
    HttpServerSettings, HttpServers, HttpSettingsError, HttpValue, HttpValueSource,
};
use allosaur_l7::protocol::OverTcp;

use super::profile::{StatefulError, nanos};

/// The programs of a profile that speak HTTP, by their number.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpPrograms {
    programs: Vec<(u32, HttpFields)>,
}

/// What speaks HTTP on one side.
pub(super) enum HttpSide {
    Client(HttpClients),
    Server(HttpServers),
}

impl HttpPrograms {
    /// Those of a profile.
    pub(super) fn of(profile: &json::Profile<'_>) -> Result<HttpPrograms, StatefulError> {
        let programs = profile.programs.iter().enumerate();
        let programs = programs
            .filter_map(|(i, program)| program.http.clone().map(|fields| (i as u32, fields)));
        let http = HttpPrograms {
            programs: programs.collect(),
        };
        for (i, template) in profile.templates.iter().enumerate() {
            http.check(i, Side::Client, template.client.program)?;
            http.check(i, Side::Server, template.server.program)?;
        }
        Ok(http)
    }

    /// Gives what speaks HTTP a connection without Nagle's algorithm, as servers and browsers have it: the
    /// last segment of a message would wait for a delayed acknowledgment. Whoever gives `tcp.no_delay`
    /// has what was given.
    pub(super) fn disable_nagle(&self, spec: &mut ProfileSpec) {
        let given = [&spec.client, &spec.server].map(|side| side.value(Tunable::NoDelay).is_some());
        for template in &mut spec.templates {
            let client = (template.client.program, &mut template.client.tunables);
            let server = (template.server.program, &mut template.server.tunables);
            for ((program, tunables), is_given) in [client, server].into_iter().zip(given) {
                let is_http = self.find(program).is_some();
                if is_http && !is_given && tunables.value(Tunable::NoDelay).is_none() {
                    tunables.set(Tunable::NoDelay, 1);
                }
            }
        }
    }

    /// A program of clients stands on the side of clients.
    fn check(&self, template: usize, side: Side, program: u32) -> Result<(), StatefulError> {
        let own = match self.find(program) {
            None => return Ok(()),
            Some(HttpFields::Client(_)) => Side::Client,
            Some(HttpFields::Server(_)) => Side::Server,
        };
        if own == side {
            return Ok(());
        }
        Err(StatefulError::Http(
            format!("templates[{template}].{side}_template.program_index"),
            format!("is {program}, which is an HTTP {own}: use it on the side of the {own}"),
        ))
    }

    pub(super) fn find(&self, program: u32) -> Option<&HttpFields> {
        let found = self.programs.iter().find(|(number, _)| *number == program);
        found.map(|(_, fields)| fields)
    }

    /// What speaks HTTP in the place of a program, if it does.
    pub(super) fn make(
        &self,
        program: u32,
        buffers: &Arc<Buffers>,
    ) -> Result<Option<HttpSide>, StatefulError> {
        let Some(fields) = self.find(program) else {
            return Ok(None);
        };
        let refused = |error: HttpSettingsError| {
            let kind = match fields {
                HttpFields::Client(_) => "http_client",
                HttpFields::Server(_) => "http_server",
            };
            let path = format!("program_list[{program}].{kind}.{}", error.field);
            StatefulError::Http(path, error.reason)
        };
        let count = buffers.count();
        let made = match fields {
            HttpFields::Client(fields) => client(fields, count)
                .and_then(|settings| HttpClients::new(&settings, Arc::clone(buffers)))
                .map(HttpSide::Client),
            HttpFields::Server(fields) => server(fields, count)
                .and_then(|settings| HttpServers::new(&settings, Arc::clone(buffers)))
                .map(HttpSide::Server),
        };
        made.map(Some).map_err(refused)
    }

    /// Has them run over TCP. Those that run over TLS are copies.
    pub(super) fn run(
        &self,
        mut compiled: CompiledProfile,
    ) -> Result<CompiledProfile, StatefulError> {
        for (number, _) in &self.programs {
            let buffers = Arc::clone(compiled.buffers());
            let made: Arc<dyn ApplicationFactory> = match self.make(*number, &buffers)? {
                None => continue,
                Some(HttpSide::Client(clients)) => Arc::new(OverTcp(clients)),
                Some(HttpSide::Server(servers)) => Arc::new(OverTcp(servers)),
            };
            compiled = compiled.with_application(ProgramIndex(*number as u16), made);
        }
        Ok(compiled)
    }
}

fn client(
    fields: &HttpClientFields,
    buffers: usize,
) -> Result<HttpClientSettings, HttpSettingsError> {
    let requests = fields.requests.iter().enumerate();
    let requests = requests.map(|(i, one)| request(i, one, buffers));
    Ok(HttpClientSettings {
        host: fields.host.clone(),
        requests: requests.collect::<Result<_, _>>()?,
        requests_per_connection: fields.requests_per_connection,
        pipeline: fields.pipeline,
        values: fields.values.iter().map(value).collect(),
        think: nanos(fields.think_usec),
        timeout: fields.timeout_usec.map(nanos),
    })
}

fn value(fields: &HttpValueFields) -> HttpValue {
    HttpValue {
        name: fields.name.clone(),
        source: match &fields.source {
            HttpSourceFields::List(texts, is_random) => HttpValueSource::List {
                texts: texts.clone(),
                is_random: *is_random,
            },
            HttpSourceFields::Counter(numbers) => HttpValueSource::Counter {
                first: numbers.first,
                last: numbers.last,
                step: numbers.step,
                digits: numbers.digits,
            },
            HttpSourceFields::Random(numbers) => HttpValueSource::Random {
                first: numbers.first,
                last: numbers.last,
                digits: numbers.digits,
            },
            HttpSourceFields::Token(length) => HttpValueSource::Token { length: *length },
        },
        is_of_connection: fields.is_of_connection,
    }
}

fn request(
    i: usize,
    fields: &HttpRequestFields,
    buffers: usize,
) -> Result<HttpRequest, HttpSettingsError> {
    let constant = body(&format!("requests[{i}]"), fields.body, buffers)?;
    Ok(HttpRequest {
        method: fields.method.clone(),
        path: fields.path.clone(),
        headers: fields.headers.clone(),
        body: match (&fields.text, constant) {
            (Some(text), _) => HttpRequestBody::Text(text.clone()),
            (None, Some(buffer)) => HttpRequestBody::Buffer(buffer),
            (None, None) => HttpRequestBody::None,
        },
        expected: Expected {
            statuses: fields.statuses.clone(),
            body_bytes: fields.body_bytes,
            body_sha256: fields.body_sha256,
        },
    })
}

fn server(
    fields: &HttpServerFields,
    buffers: usize,
) -> Result<HttpServerSettings, HttpSettingsError> {
    let routes = fields.routes.iter().enumerate();
    let routes = routes.map(|(i, one)| route(i, one, buffers));
    Ok(HttpServerSettings {
        routes: routes.collect::<Result<_, _>>()?,
        requests_per_connection: fields.requests_per_connection,
    })
}

fn route(
    i: usize,
    fields: &HttpRouteFields,
    buffers: usize,
) -> Result<HttpRoute, HttpSettingsError> {
    Ok(HttpRoute {
        path: fields.path.clone(),
        status: fields.status,
        headers: fields.headers.clone(),
        body: body(&format!("routes[{i}]"), fields.body, buffers)?,
        chunk_bytes: fields.chunk_bytes,
        delay: nanos(fields.delay_usec),
    })
}

fn body(
    field: &str,
    buffer: Option<u32>,
    buffers: usize,
) -> Result<Option<BufferIndex>, HttpSettingsError> {
    let Some(buffer) = buffer else {
        return Ok(None);
    };
    if (buffer as usize) < buffers {
        return Ok(Some(BufferIndex(buffer)));
    }
    Err(HttpSettingsError {
        field: format!("{field}.buf_index"),
        reason: format!("is {buffer}; buf_list has {buffers}"),
    })
}
