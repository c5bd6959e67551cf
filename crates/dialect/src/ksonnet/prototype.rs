//! The three prototypes of the package `mpi-job`: what can be given, what is taken when it is not, and how they are found.

use serde_json::Value;

use super::literal;

/// A kind of component.
#[derive(Debug)]
pub(super) struct Prototype {
    /// Its full name.
    pub(super) name: &'static str,
    /// One line for lists.
    pub(super) summary: &'static str,
    pub(super) params: &'static [Param],
    pub(super) makes: Makes,
}

/// What a prototype makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Makes {
    Operator,
    SimpleJob,
    CustomJob,
}

/// A parameter of a prototype.
#[derive(Debug)]
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) kind: ParamKind,
    /// Absent: it has to be given. The name is given by the component.
    pub(super) default: Option<&'static str>,
    pub(super) doc: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParamKind {
    Text,
    Number,
}

/// Why a prototype or a parameter is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrototypeError {
    /// Several names end in the query.
    #[error("ambiguous match for '{query}': {names}")]
    Ambiguous {
        /// What was asked for.
        query: String,
        /// What it could mean.
        names: String,
    },
    /// No name ends in the query, but some hold it.
    #[error("no prototype names matched '{query}'; a list of partial matches: {names}")]
    Partial {
        /// What was asked for.
        query: String,
        /// What it could mean.
        names: String,
    },
    /// Nothing like it.
    #[error("no prototype names matched '{0}'")]
    Unknown(String),
    /// A number that is none.
    #[error("could not convert parameter '{name}' into a number: '{value}'")]
    NoNumber {
        /// The parameter.
        name: String,
        /// What was given.
        value: String,
    },
    /// A parameter without default is empty.
    #[error(
        "failed to instantiate prototype '{prototype}': the following required parameters are missing: {names}"
    )]
    Missing {
        /// The prototype.
        prototype: &'static str,
        /// The parameters.
        names: String,
    },
    /// No parameter of that name.
    #[error("unknown flag: --{0}")]
    UnknownParam(String),
}

pub(super) static PROTOTYPES: [Prototype; 3] = [
    Prototype {
        name: "io.ksonnet.pkg.mpi-job-custom",
        summary: "An MPI job for which you state the number of replicas and the GPUs of each",
        params: &[
            NAME,
            Param {
                name: "replicas",
                kind: ParamKind::Number,
                default: Some("1"),
                doc: "Number of replicas of the job",
            },
            Param {
                name: "gpusPerReplica",
                kind: ParamKind::Number,
                default: Some("1"),
                doc: "GPUs of each replica",
            },
            IMAGE,
            COMMAND,
            ARGS,
            Param {
                name: "pvcName",
                kind: ParamKind::Text,
                default: Some("null"),
                doc: "Persistent volume claim to mount; needs volumeMountPath",
            },
            Param {
                name: "volumeMountPath",
                kind: ParamKind::Text,
                default: Some("null"),
                doc: "Where the claim is mounted; needs pvcName",
            },
        ],
        makes: Makes::CustomJob,
    },
    Prototype {
        name: "io.ksonnet.pkg.mpi-job-simple",
        summary: "An MPI job for which you state the total number of GPUs",
        params: &[
            NAME,
            Param {
                name: "gpus",
                kind: ParamKind::Number,
                default: Some("1"),
                doc: "Number of GPUs of the whole job: 1, 2, 4 or a multiple of 8",
            },
            IMAGE,
            COMMAND,
            ARGS,
        ],
        makes: Makes::SimpleJob,
    },
    Prototype {
        name: "io.ksonnet.pkg.mpi-operator",
        summary: "The MPI operator, which runs MPI jobs",
        params: &[
            NAME,
            Param {
                name: "image",
                kind: ParamKind::Text,
                default: Some("mpioperator/mpi-operator:latest"),
                doc: "Image of the operator",
            },
            Param {
                name: "kubectlDeliveryImage",
                kind: ParamKind::Text,
                default: Some("mpioperator/kubectl-delivery:latest"),
                doc: "Image that brings kubectl to the launcher",
            },
            Param {
                name: "gpusPerNode",
                kind: ParamKind::Number,
                default: Some("8"),
                doc: "The most GPUs that one node has",
            },
        ],
        makes: Makes::Operator,
    },
];

const NAME: Param =
    Param { name: "name", kind: ParamKind::Text, default: None, doc: "Name of the objects" };
const IMAGE: Param = Param {
    name: "image",
    kind: ParamKind::Text,
    default: Some("mpioperator/tensorflow-benchmarks:latest"),
    doc: "Image of the job",
};
const COMMAND: Param = Param {
    name: "command",
    kind: ParamKind::Text,
    default: Some("null"),
    doc: "Command of the job; commas separate its words",
};
const ARGS: Param = Param {
    name: "args",
    kind: ParamKind::Text,
    default: Some("null"),
    doc: "Arguments of the job; commas separate them",
};

/// The one prototype whose name ends in the query.
pub(super) fn find(query: &str) -> Result<&'static Prototype, PrototypeError> {
    let names =
        |matches: &[&Prototype]| matches.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    let matching = |test: fn(&str, &str) -> bool| -> Vec<&'static Prototype> {
        PROTOTYPES.iter().filter(|it| test(it.name, query)).collect()
    };
    let query_text = query.to_owned();
    if let Some(exact) = PROTOTYPES.iter().find(|it| it.name == query) {
        return Ok(exact);
    }
    match matching(|name, query| name.ends_with(query)).as_slice() {
        [only] => Ok(only),
        [] => match matching(|name, query| name.contains(query)).as_slice() {
            [] => Err(PrototypeError::Unknown(query_text)),
            partial => Err(PrototypeError::Partial { query: query_text, names: names(partial) }),
        },
        several => Err(PrototypeError::Ambiguous { query: query_text, names: names(several) }),
    }
}

impl Prototype {
    pub(super) fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// Every parameter with its value: what was given, else the default, else (for the name) the component's name.
    pub(super) fn values(
        &self,
        component: &str,
        given: &[(String, String)],
    ) -> Result<Vec<(&'static str, Value)>, PrototypeError> {
        if let Some((name, _)) = given.iter().find(|(name, _)| self.param(name).is_none()) {
            return Err(PrototypeError::UnknownParam(name.clone()));
        }
        let mut values = Vec::new();
        let mut missing = Vec::new();
        for param in self.params {
            let stated = given.iter().rev().find(|(name, _)| name == param.name);
            let fallback = param.default.unwrap_or(component);
            let text = match stated {
                Some((_, text)) if param.default.is_some() || !text.is_empty() => text.as_str(),
                Some(_) | None => fallback,
            };
            if text.is_empty() && param.default.is_none() {
                missing.push(format!("--{}", param.name));
            }
            values.push((param.name, param.value(text)?));
        }
        if missing.is_empty() {
            Ok(values)
        } else {
            Err(PrototypeError::Missing { prototype: self.name, names: missing.join(", ") })
        }
    }
}

impl Param {
    fn value(&self, text: &str) -> Result<Value, PrototypeError> {
        match self.kind {
            ParamKind::Text => Ok(text.into()),
            ParamKind::Number => {
                literal::value(text).ok().filter(Value::is_number).ok_or_else(|| {
                    PrototypeError::NoNumber { name: self.name.to_owned(), value: text.to_owned() }
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_is_enough() {
        assert_eq!(find("mpi-job-simple").unwrap().makes, Makes::SimpleJob);
        assert_eq!(find("custom").unwrap().makes, Makes::CustomJob);
        assert_eq!(find("io.ksonnet.pkg.mpi-operator").unwrap().makes, Makes::Operator);
    }

    #[test]
    fn what_matches_none_or_several_is_told() {
        assert_eq!(
            find("mpi-job").unwrap_err().to_string(),
            "no prototype names matched 'mpi-job'; a list of partial matches: io.ksonnet.pkg.mpi-job-custom, io.ksonnet.pkg.mpi-job-simple"
        );
        assert_eq!(find("tf-job").unwrap_err().to_string(), "no prototype names matched 'tf-job'");
        let several = find("").unwrap_err().to_string();
        assert!(several.starts_with("ambiguous match for ''"), "{several}");
    }

    #[test]
    fn values_have_the_type_of_their_parameter() {
        let given = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let simple = find("mpi-job-simple").unwrap();
        let values = simple.values("ring8", &given(&[("gpus", "8"), ("name", "")])).unwrap();
        assert_eq!(values.iter().find(|it| it.0 == "gpus").unwrap().1, 8);
        assert_eq!(values.iter().find(|it| it.0 == "name").unwrap().1, "ring8");
        assert_eq!(values.iter().find(|it| it.0 == "command").unwrap().1, "null");
        for wrong in ["many", "", "NaN", "0x10", "'8'"] {
            let error = simple.values("a", &given(&[("gpus", wrong)])).unwrap_err();
            assert!(matches!(error, PrototypeError::NoNumber { .. }), "{wrong}");
        }
        let error = simple.values("", &[]).unwrap_err();
        assert!(matches!(error, PrototypeError::Missing { .. }));
        let error = simple.values("a", &given(&[("replicas", "2")])).unwrap_err();
        assert_eq!(error.to_string(), "unknown flag: --replicas");
    }
}
