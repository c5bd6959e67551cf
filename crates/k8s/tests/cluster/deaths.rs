//! The process that drives a job dies after any one of its writes; the next one ends the job as if nothing had happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::future::{Either, Ready, ready};
use http::{Method, Request};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, Layer, Service};
use unisono_k8s::connect;
use unisono_plan::Verdict;
use unisono_testcluster::Cluster;

use crate::story::{PATIENCE, Story, tell};
use crate::versions::job;

/// How long to wait between two ticks.
const PAUSE: Duration = Duration::from_millis(50);

/// Lets so many writes through, and nothing after them: the process is dead.
#[derive(Clone)]
struct Mortal(Arc<AtomicI64>);

struct Dying<S> {
    inner: S,
    left: Arc<AtomicI64>,
}

impl<S> Layer<S> for Mortal {
    type Service = Dying<S>;

    fn layer(&self, inner: S) -> Dying<S> {
        Dying { inner, left: Arc::clone(&self.0) }
    }
}

impl<S> Service<Request<Body>> for Dying<S>
where
    S: Service<Request<Body>, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<S::Future, Ready<Result<S::Response, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = request.method() == Method::GET;
        let left = if reads {
            self.left.load(Ordering::SeqCst)
        } else {
            self.left.fetch_sub(1, Ordering::SeqCst)
        };
        match left > 0 {
            true => Either::Left(self.inner.call(request)),
            false => Either::Right(ready(Err("the process is dead".into()))),
        }
    }
}

async fn mortal(cluster: &Cluster, writes: i64) -> anyhow::Result<(Client, Arc<AtomicI64>)> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let left = Arc::new(AtomicI64::new(writes));
    let client = connect(config)?.with_layer(&Mortal(Arc::clone(&left))).build();
    Ok((client, left))
}

pub(crate) fn after_any_write(cluster: &Cluster) -> anyhow::Result<()> {
    tell(cluster, "deaths", async |story: &Story<'_>| {
        let undisturbed = writes_of_a_whole_life(story).await?;
        ensure!(undisturbed > 8, "only {undisturbed} writes");
        // All these jobs live side by side, each with a process that dies at another moment.
        let mut lives = Vec::new();
        for writes in 1..undisturbed {
            let name = format!("life-{writes}");
            story.submit(&small(&name))?;
            lives.push((name, mortal(story.cluster, writes).await?.0));
        }
        for (name, client) in &lives {
            let deadline = Instant::now() + PATIENCE;
            while story
                .tick_with(name, client.clone())
                .await
                .is_ok_and(|(_, next, _)| !next.status.is_terminal())
            {
                ensure!(Instant::now() < deadline, "{name}: neither dead nor at its end");
                tokio::time::sleep(PAUSE).await;
            }
        }
        for (name, _) in &lives {
            let status = story.finish(name).await?;
            ensure!(
                status.end().map(|end| end.verdict) == Some(Verdict::Succeeded),
                "{name}: {status:?}"
            );
            ensure!(
                (status.attempt, status.epoch) == (0, 0),
                "{name} took several tries: {status:?}"
            );
        }
        Ok(())
    })
}

/// A job whose launcher does almost nothing.
fn small(name: &str) -> serde_json::Value {
    let mut job = job(name, "true");
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = serde_json::json!(1);
    job
}

async fn writes_of_a_whole_life(story: &Story<'_>) -> anyhow::Result<i64> {
    const PLENTY: i64 = 1_000;
    story.submit(&small("whole"))?;
    let (client, left) = mortal(story.cluster, PLENTY).await?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, next, quiet) = story.tick_with("whole", client.clone()).await?;
        if next.status.is_terminal() && quiet {
            return Ok(PLENTY - left.load(Ordering::SeqCst));
        }
        ensure!(Instant::now() < deadline, "no end in sight: {:?}", next.why);
        tokio::time::sleep(PAUSE).await;
    }
}
