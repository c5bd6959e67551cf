//! Gangs: the PodGroup of whichever scheduler places all pods of a job at once.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use unisono_testcluster::{COSCHEDULER, Cluster};

use crate::kinds;
use crate::kube_batch::mpi;
use crate::operator::Start;
use crate::story::{GATED, HELLO, Story, job, tell_alone};
use crate::trouble::taken;

pub(crate) fn coscheduled(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "gang", |story| {
        cluster.start_coscheduling()?;
        let gang = format!("scheduler-plugins={COSCHEDULER}");
        let operator = story.operator(&Start { gang: &gang, ..Start::default() })?;
        let groups = Groups { story, group: "scheduling.x-k8s.io", version: "v1alpha1" };
        let mut gang = job("v2beta1", "gang", HELLO);
        gang["spec"]["runPolicy"] = json!({"cleanPodPolicy": "Running"});
        groups.run_past_an_obstacle(&gang)?;
        story.succeeds("gang")?;
        for pod in story.pods("gang")? {
            let pod = cluster.api().get(&format!("{}/{pod}", story.path("/api/v1", "pods")))?;
            let scheduler = &pod["spec"]["schedulerName"];
            ensure!(*scheduler == COSCHEDULER, "{scheduler}");
        }
        story.until("gang", "without a PodGroup", |_| groups.are_gone("gang"))?;
        groups.launcher_last()?;
        groups.of_an_mpi()?;
        operator.terminate()
    })
}

/// Schedulers that the cluster does not have: the PodGroup is made, and goes with a suspension.
pub(crate) fn of_others(cluster: &Cluster) -> anyhow::Result<()> {
    tell_alone(cluster, "gangs", |story| {
        for (gang, group, version) in [
            ("volcano", "scheduling.volcano.sh", "v1beta1"),
            ("kube-batch", "scheduling.incubator.k8s.io", "v1alpha1"),
        ] {
            let groups = Groups { story, group, version };
            let _definition = cluster.define_pod_groups(group, version)?;
            let operator = story.operator(&Start { gang, ..Start::default() })?;
            groups.run_past_an_obstacle(&job("v2beta1", gang, HELLO))?;
            groups.follows_its_workers(gang)?;
            story.merge(gang, &json!({"spec": {"runPolicy": {"suspend": true}}}))?;
            story.until(gang, "without a gang", |_| groups.are_gone(gang))?;
            operator.terminate()?;
        }
        Ok(())
    })
}

/// The PodGroups of a scheduler.
struct Groups<'story> {
    story: &'story Story<'story>,
    group: &'static str,
    version: &'static str,
}

impl Groups<'_> {
    /// Where they are.
    fn path(&self) -> String {
        self.story.path(&format!("/apis/{}/{}", self.group, self.version), "podgroups")
    }

    fn are_gone(&self, name: &str) -> bool {
        self.story
            .cluster
            .api()
            .find(&format!("{}/{name}", self.path()))
            .is_ok_and(|it| it.is_none())
    }

    /// Creates a job whose PodGroup's name is taken, and waits until it has its own once the other is gone.
    fn run_past_an_obstacle(&self, job: &Value) -> anyhow::Result<()> {
        let (story, api) = (self.story, self.story.cluster.api());
        let name = job["metadata"]["name"].as_str().context("no name")?;
        let path = format!("{}/{name}", self.path());
        let foreign = json!({
            "apiVersion": format!("{}/{}", self.group, self.version),
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": 1},
        });
        api.create(&self.path(), &foreign)?;
        story.create(job)?;
        taken(story, name)?;
        api.delete(&path)?;
        let is_owned = |job: &Value| {
            let found = api.find(&path).ok().flatten();
            found.is_some_and(|it| {
                it["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
            })
        };
        story.until(name, "a gang", is_owned).map(|_| ())
    }

    /// A launcher that waits for its workers is none that they wait for.
    fn launcher_last(&self) -> anyhow::Result<()> {
        let mut late = job("v2beta1", "late", HELLO);
        late["spec"]["launcherCreationPolicy"] = json!("WaitForWorkersReady");
        self.story.create(&late)?;
        self.story.succeeds("late").map(|_| ())
    }

    /// kube-batch's own jobs have a PodGroup, too, as large as they are, which goes with their end.
    fn of_an_mpi(&self) -> anyhow::Result<()> {
        let story = self.story;
        let line = format!("{GATED}; {}", kinds::HELLO);
        let job = kinds::Job::create(story, &mpi("all", true, &line))?;
        job.until("made", |job| job["status"]["job"]["active"] == 2)?;
        let descriptors = &job.object()?["status"]["descriptors"];
        ensure!(descriptors["podGroup"] == "all-podgroup", "{descriptors}");
        let group = story.cluster.api().get(&format!("{}/all-podgroup", self.path()))?;
        ensure!(group["spec"]["minMember"] == 2, "{group}");
        let owner = &group["metadata"]["ownerReferences"][0];
        ensure!(owner["uid"] == job.object()?["metadata"]["uid"], "{group}");
        for pod in ["all-0", "all-1"] {
            let path = format!("{}/{pod}", story.path("/api/v1", "pods"));
            let pod = story.cluster.api().get(&path)?;
            let named = &pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"];
            ensure!(*named == "all-podgroup", "{pod}");
            ensure!(pod["spec"]["schedulerName"] == COSCHEDULER, "{pod}");
        }
        story.kubectl(&["wait", "--for=condition=Ready", "pod/all-0", "--timeout=120s"])?;
        story.kubectl(&["exec", "all-0", "--", "touch", "/tmp/go"])?;
        let is_complete = |job: &Value| job["status"]["job"]["conditions"][0]["type"] == "Complete";
        job.until("complete", is_complete)?;
        kinds::ranks_are(&job.said()?, &["all-0", "all-1"])?;
        job.until("without a PodGroup", |_| self.are_gone("all-podgroup")).map(|_| ())
    }

    /// A gang is as large as its job.
    fn follows_its_workers(&self, name: &str) -> anyhow::Result<()> {
        let (story, api) = (self.story, self.story.cluster.api());
        let path = format!("{}/{name}", self.path());
        let is = |least: u32| api.get(&path).is_ok_and(|it| it["spec"]["minMember"] == least);
        story.until(name, "three pods large", |_| is(3))?;
        story.until(name, "three pods", |_| story.pods(name).is_ok_and(|it| it.len() == 3))?;
        let workers = json!({"mpiReplicaSpecs": {"Worker": {"replicas": 1}}});
        story.merge(name, &json!({"spec": workers}))?;
        story.until(name, "two pods large", |_| is(2)).map(|_| ())
    }
}
