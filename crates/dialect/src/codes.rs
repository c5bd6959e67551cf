//! The faults and notes that reading can give, each with a name that people can look up.

use unisono_job::Code;

/// Declares the codes of one module and lists them.
macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident = $name:literal, $severity:ident, $summary:literal, $explanation:literal;)*) => {
        $($(#[$doc])* #[doc = $summary] pub(crate) static $constant: unisono_job::Code = unisono_job::Code {
            name: $name,
            severity: unisono_job::Severity::$severity,
            summary: $summary,
            explanation: $explanation,
        };)*
        /// The codes of this module.
        pub(crate) static LIST: &[&unisono_job::Code] = &[$(&$constant),*];
    };
}
pub(crate) use codes;

/// The modules that have codes: a dialect with codes of its own adds its list here.
const LISTS: &[&[&Code]] = &[
    LIST,
    crate::azureml::codes::LIST,
    crate::openpai::codes::LIST,
    crate::kubeflow::codes::LIST,
    crate::kube_batch::codes::LIST,
];

/// Every code that reading and writing can give.
pub static CODES: &[&Code] = &joined::<{ total(LISTS) }>(LISTS);

const fn total(lists: &[&[&Code]]) -> usize {
    let (mut total, mut list) = (0, 0);
    while list < lists.len() {
        total += lists[list].len();
        list += 1;
    }
    total
}

const fn joined<const TOTAL: usize>(lists: &[&[&'static Code]]) -> [&'static Code; TOTAL] {
    let mut codes = [&EMPTY; TOTAL];
    let (mut filled, mut list) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            codes[filled] = lists[list][index];
            filled += 1;
            index += 1;
        }
        list += 1;
    }
    codes
}

codes! {
    EMPTY = "empty-file", Error, "the file holds nothing",
        "The file has no content, only white space or comments. `unisono init --dialect DIALECT` prints a job to start from.";
    TOO_LARGE = "file-too-large", Error, "the file is larger than 16 MiB",
        "Job files are small; a file of more than 16 MiB is most likely the data of a job, not the job. Split a large `List` into several files.";
    NOT_TEXT = "not-text", Error, "the file is not UTF-8 text",
        "The file holds bytes that are no UTF-8 text: it is a program, an archive, or text in another encoding. Save it as UTF-8.";
    SYNTAX = "syntax", Error, "the text is no YAML or JSON",
        "The text breaks the rules of YAML or JSON, so nothing after this place can be read. A file that begins with `{` is read as JSON, everything else as YAML.";
    TOO_DEEP = "too-deep", Error, "values are nested too deep",
        "No job needs more than 100 levels of lists and maps. Files that have more are refused so that no file can exhaust the reader.";
    TOO_MANY_VALUES = "too-many-values", Error, "the file holds too many values",
        "A file may hold 300,000 values. An alias counts as all the values of its anchor, so a short file can hold very many.";
    TOO_MANY_DOCUMENTS = "too-many-documents", Error, "the file holds too many documents",
        "A file may hold 1,000 documents. Split a larger one into several files.";
    DUPLICATE_KEY = "duplicate-key", Error, "one map has the same key twice",
        "Readers disagree on which of the two values counts, so neither is taken. Keep the one you mean.";
    JSON_COMMENT = "json-comment", Warning, "a JSON file has comments",
        "JSON has no comments. Unisono takes `//` and `/* */`, because many job files have them, but the system the file was written for refuses it.";
    UNKNOWN_DOCUMENT = "unknown-document", Error, "the document is no MPI job that Unisono knows",
        "Nothing in the document tells which system it belongs to. Unisono knows Azure ML `type: MpiJob`, its flattened form and CLI v2 `distribution: {type: mpi}`; OpenPAI version 1 (JSON with `jobName` and `taskRoles`) and version 2 (`protocolVersion: 2`); Kubeflow `MPIJob` v1alpha1, v1alpha2, v1 and v2beta1; kube-batch `MPI`; and its own `UnisonoJob`.";
    OTHER_JOB = "not-an-mpi-job", Error, "the document is a job, but not an MPI job",
        "The document describes a job that starts its processes by other means than MPI (PyTorch, TensorFlow, Ray, a plain Kubernetes Job). Unisono runs MPI jobs; the hint says what to write instead.";
    NO_JOB = "no-job", Error, "no document of the file is an MPI job",
        "The file has documents, but all of them are other Kubernetes objects (a Service, a ConfigMap, …).";
    SKIPPED_DOCUMENT = "skipped-document", Note, "a document of the file is no job and is skipped",
        "Files often carry other Kubernetes objects beside the job. Unisono reads only jobs; apply the others with kubectl.";
    WRONG_TYPE = "wrong-type", Error, "a value is of another type than its field",
        "The field takes another kind of value: a number where text stands, a list where a map is needed, and so on. Quote text that looks like a number or a truth value (\"1\", \"yes\"), and do not quote numbers.";
    OUT_OF_RANGE = "out-of-range", Error, "a number is too small or too large",
        "The field takes only numbers within the range that the message tells.";
    NOT_ONE_OF = "not-one-of", Error, "a value is none of those the field takes",
        "The field takes only the values that the message lists.";
    BAD_FORM = "bad-form", Error, "a text does not have the form its field needs",
        "The field takes text of a certain form (a name, a quantity, a reference); the message tells which.";
    MISSING = "missing-field", Error, "a field that the job needs is absent",
        "The system the file was written for refuses it without this field, and Unisono cannot guess its value.";
    UNKNOWN_KEY = "unknown-key", Warning, "a key that nobody reads",
        "The key is not one that the system knows, so it has no effect. Most often it is a misspelling; the hint names the nearest key that is known.";
    INVALID = "invalid-job", Error, "values that each are fine do not fit together",
        "Two or more fields contradict each other, as the message tells.";
    MORE_NOTES = "more-notes", Note, "there is more to tell than is shown",
        "A document tells its first hundred faults and its first hundred other notes. Most often the rest has the same cause.";
    IGNORED = "ignored-field", Note, "a field that has no effect in Unisono",
        "The field is known and kept, but nothing in Unisono acts on it; the message tells why.";
    OBSOLETE = "obsolete-field", Warning, "a field that its own system has given up",
        "The field is accepted for old files' sake and does nothing, in its own system too.";
    LOST = "lost-in-conversion", Warning, "a conversion could not carry a value",
        "The dialect that was asked for has no place for this value, or gives it another meaning. `convert --strict` refuses to lose anything.";
    SECRET_WRITTEN = "secret-written", Warning, "values of secrets stand in the written commands",
        "OpenPAI puts the values of `secrets` into commands before it runs them, and so does reading. A job that is written again has them in its commands, for everybody to read. Replace them by variables that are set elsewhere, such as from a Kubernetes Secret.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own_and_is_explained() {
        let mut names: Vec<&str> = CODES.iter().map(|code| code.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!((names.len(), all), (all, LISTS.iter().map(|list| list.len()).sum()));
        for code in CODES {
            assert!(!code.summary.is_empty() && code.explanation.ends_with('.'), "{}", code.name);
        }
    }
}
