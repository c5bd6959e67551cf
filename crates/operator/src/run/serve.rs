//! What the operator answers over HTTP: whether it lives, whether it is ready, its numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::metrics::Metrics;

/// What the answers are made of.
#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) metrics: Metrics,
    /// Whether it works, or stands by to.
    ready: AtomicBool,
}

impl Health {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { metrics: Metrics::new(), ready: AtomicBool::new(false) })
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }
}

/// Answers until the process ends.
pub(crate) async fn serve(listener: TcpListener, health: Arc<Health>) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health);
    axum::serve(listener, router).await
}

async fn ready(State(health): State<Arc<Health>>) -> impl IntoResponse {
    if health.ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the first lists are not through\n")
    }
}

async fn metrics(State(health): State<Arc<Health>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], health.metrics.text())
}
